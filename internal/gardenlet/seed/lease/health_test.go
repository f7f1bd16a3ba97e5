package lease

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestHealth(t *testing.T) {
	clk := testingclock.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	h := NewHealth(clk, 20*time.Second)
	expect := func(when string, want bool) {
		t.Helper()
		if err := h.Check(nil); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("before the first attempt", true)
	if h.Renewed() {
		t.Error("it was renewed before the first attempt")
	}
	h.Set(true)
	if !h.Renewed() {
		t.Error("it was not renewed")
	}
	expect("after a renewal", true)
	clk.SetTime(clk.Now().Add(20 * time.Second))
	expect("just in time", true)
	clk.SetTime(clk.Now().Add(time.Second))
	expect("without another attempt for too long", false)
	h.Set(true)
	expect("after the next renewal", true)
	h.Set(false)
	expect("after one that failed", false)
	if h.Renewed() {
		t.Error("it was renewed by an attempt that failed")
	}
}
