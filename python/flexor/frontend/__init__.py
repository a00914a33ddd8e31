"""Front ends: what turns a program of somebody else's into Flexor bytecode."""
