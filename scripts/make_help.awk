# List the targets of a Makefile by group. A target is listed if a comment `## [group] text` follows its prerequisites.
BEGIN {
  split("start develop measure compare storm", order, " ")
  title["start"] = "Start here"
  title["develop"] = "Develop"
  title["measure"] = "Measure: benchmarks and accuracy"
  title["compare"] = "Compare: real clients, agents and other gateways"
  title["storm"] = "Storm: long tests with kills, faults and load"
}
/^[a-z-]+:([^=].*)?  ## / {
  name = $0; sub(/:.*/, "", name)
  text = $0; sub(/.*  ## /, "", text)
  group = "develop"
  if (match(text, /^\[[a-z]+\] /)) {
    group = substr(text, 2, RLENGTH - 3)
    text = substr(text, RLENGTH + 1)
  }
  sub(/;.*/, "", text)  # the rest is about options
  gsub(/\$\$/, "$", text)
  lines[group] = lines[group] sprintf("  make %-20s %s\n", name, text)
}
END {
  for (i = 1; i in order; i++) printf "%s%s\n%s", (i > 1 ? "\n" : ""), title[order[i]], lines[order[i]]
  print "\nOptions of a target (PORT=, CLIENTS=, SECONDS=, ...) are in its comment in the Makefile."
}
