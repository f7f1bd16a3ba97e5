# Prints what tests that failed said, from the output of "go test -v": at the end of a long log it is found.
/^=== (RUN|NAME|CONT|PAUSE) / { test = $3; next }
/^ *--- FAIL: / { failed[++count] = $3 }
/^ *--- / { next }
{ said[test, ++lines[test]] = $0 }
END {
  for (i = 1; i <= count; i++) {
    test = failed[i]
    print "=== said by " test
    for (j = lines[test] > 40 ? lines[test] - 39 : 1; j <= lines[test]; j++) print said[test, j]
  }
}
