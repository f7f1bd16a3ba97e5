package env

import (
	"testing"
	"time"
)

// Story returns a function that begins a step of a test which tells one story: later steps need what earlier ones did, so they cannot be
// subtests that run alone. The log names each step and when it began; a failure stands below its step.
func Story(t testing.TB) func(step string) {
	t.Helper()
	begin, number := time.Now(), 0
	return func(step string) {
		t.Helper()
		number++
		t.Logf("step %d, after %s: %s", number, time.Since(begin).Round(100*time.Millisecond), step)
	}
}
