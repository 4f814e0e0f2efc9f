# Command of a hook: sh ask.sh PYTHON ENTRY AGENT DIRECTORY, with the event on standard input.
# Asks the resident server over its Unix socket, which takes a few milliseconds; without one, starts an interpreter.
# Only a socket that belongs to this account (-O) is asked: nobody else hears the event or decides.
LC_ALL=C
socket=$4/serve.sock
if [ -S "$socket" ] && [ -O "$socket" ] && command -v curl >/dev/null; then
  event=$(cat)
  if answer=$(printf '%s' "$event" | curl -qsf -m 110 --noproxy '*' --unix-socket "$socket" -H 'expect:' \
    -H "x-rung-code: ${2%/*}" -H "x-rung-journal: ${RUNG_JOURNAL-}" --data-binary @- "http://rung/$3") &&
    [ -n "$answer" ]; then
    printf '%s' "$answer"
    exit 0
  fi
  printf '%s' "$event" | "$1" -I -S "$2" "$3" "$4"
  exit 0
fi
exec "$1" -I -S "$2" "$3" "$4"
