package turns

import "testing"

// Slow objects of one namespace leave workers to others.
func TestTurns(t *testing.T) {
	const most = 2
	turns := &Turns{}
	for _, step := range []struct {
		namespace string
		want      bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}} {
		if got := turns.Take(step.namespace, most); got != step.want {
			t.Errorf("a turn of %s is %v", step.namespace, got)
		}
	}
	if !turns.Take("a", 0) || turns.Running("a") != 3 {
		t.Errorf("%d passes run without a limit", turns.Running("a"))
	}
	turns.Give("a")
	turns.Give("a")
	if !turns.Take("a", most) {
		t.Error("there is no turn after a pass has ended")
	}
	for _, namespace := range []string{"a", "a", "b"} {
		turns.Give(namespace)
	}
	if len(turns.running) > 0 {
		t.Errorf("after all passes, %v are kept", turns.running)
	}
}
