# Command of a hook: bash ask.sh PYTHON ENTRY AGENT DIRECTORY, with the event on standard input.
# Asks the resident server over loopback, which takes a few milliseconds; without one, starts an interpreter.
LC_ALL=C
home=${2%/*} port='' token='' at='' event='' answer=''
if [ -r "$4/serve" ]; then
  read -r port token at <"$4/serve"
  if [ "$at" = "$home" ] && { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
    event=$(cat)
    printf '%s %s %s %s\n%s' "$token" "$3" "${#event}" "${RUNG_JOURNAL-}" "$event" >&3
    if IFS= read -r -t 110 answer <&3 && [ -n "$answer" ]; then
      printf '%s' "$answer"
      exit 0
    fi
    exec 3>&-
    printf '%s' "$event" | "$1" -I -S "$2" "$3" "$4"
    exit 0
  fi
fi
exec "$1" -I -S "$2" "$3" "$4"
