package trial

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/internal/kube"
)

// maxLastError is the length of an error in a status, in bytes.
const maxLastError = 300

// secret matches what may be a credential: a value that follows its name, the credentials of a URL, a bootstrap token, a JSON web token, and long encoded
// data. The errors of a gardenlet have none, but this is what another image has written.
var secret = regexp.MustCompile(`(?i)((?:token|password|passwd|secret|private[-_ ]?key|access[-_ ]?key|authorization|bearer)["']?\s*[:=]\s*["']?)(?:bearer\s+|basic\s+)?[^\s"',;]+` +
	`|((?:bearer|basic)\s+)[^\s"',;]{8,}` +
	`|(://)[^/\s@]+@` +
	`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b` +
	`|\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?` +
	`|[A-Za-z0-9+/_-]{40,}={0,2}`)

// Ended says how a container ended, with the error that it has written last. It returns "" if that is not known.
func Ended(last *corev1.ContainerStateTerminated) string {
	if last == nil {
		return ""
	}
	text := fmt.Sprintf("with exit code %d (%s)", last.ExitCode, last.Reason)
	if message := lastError(last.Message); message != "" {
		text += ": " + message
	}
	return text
}

// lastError returns the error at the end of the output of a gardenlet, without credentials. Other lines are for its log: they say more than a status
// should.
func lastError(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "error: "), strings.HasPrefix(line, "panic: "):
			lines = []string{line}
		case len(lines) > 0 && strings.HasSuffix(lines[0], ":") && strings.HasPrefix(line, "- "): // one of several errors
			lines = append(lines, strings.TrimPrefix(line, "- ")+";")
		}
	}
	text := strings.TrimSuffix(strings.Join(lines, " "), ";")
	return kube.Shorten(secret.ReplaceAllString(text, "${1}${2}${3}***"), maxLastError)
}
