# Lines per folder from `wc -l` of the tracked text files; binary, data and result files are left out.
$2 == "total" || $2 ~ /\.(json|flx|png|npz|safetensors)$/ || $2 == "LICENSE" { next }
{
    n = split($2, part, "/")
    folder = n == 1 ? "(root)" : (part[1] ~ /^(src|tests|python)$/ && n > 2 ? part[1] "/" part[2] : part[1])
    lines[folder] += $1
    files[folder] += 1
    total += $1
    count += 1
}
END {
    for (folder in lines) printf "%7d lines %4d files  %s\n", lines[folder], files[folder], folder | "sort -k5"
    close("sort -k5")
    printf "%7d lines %4d files  in all\n", total, count
}
