package tunnel

import (
	"testing"
	"time"
)

// Agents find a restarted server before requests that wait for an agent time out.
func TestAgentsGoOnSearching(t *testing.T) {
	for backoff, tries := RoleAgent.search(), 0; tries < 1000; tries++ {
		if pause := backoff.Step(); pause > agentWait/2 {
			t.Fatalf("pause %d is %s", tries, pause)
		}
	}
}

// Each node searches for the missing instance of the server: soon at first, and rarely when it stays away.
func TestSearchBecomesRare(t *testing.T) {
	backoff, tries, soon := RoleAPIServerProxy.search(), 0, 0
	for passed := time.Duration(0); passed < time.Hour; tries++ {
		passed += backoff.Step()
		if passed < 10*time.Second {
			soon++
		}
	}
	if soon < 3 || tries > 150 {
		t.Errorf("looked %d times in the first ten seconds and %d times in an hour, want at least 3 and at most 150", soon, tries)
	}
}
