package shard

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestOf(t *testing.T) {
	counts := map[uint64]int{}
	for i := range 3000 {
		uid := types.UID(fmt.Sprintf("4a3b-%d", i))
		place := Of(uid, 3)
		if again := Of(uid, 3); again != place {
			t.Errorf("the place of %q changes from %d to %d", uid, place, again)
		}
		counts[place]++
	}
	for place := range uint64(3) {
		if counts[place] < 900 || counts[place] > 1100 {
			t.Errorf("place %d has %d of 3000 objects", place, counts[place])
		}
	}
	if got := Of("1", 0); got != 0 {
		t.Errorf("Of() with no places is %d", got)
	}
}

func TestDelay(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	first := Delay("1", at, time.Hour)
	if first < 0 || first >= time.Hour {
		t.Errorf("Delay() is %s", first)
	}
	if got := Delay("1", at.Add(time.Millisecond).Local(), time.Hour); got != first {
		t.Errorf("Delay() in the same second is %s, then %s", first, got)
	}
	if Delay("2", at, time.Hour) == first || Delay("1", at.Add(time.Second), time.Hour) == first {
		t.Error("Delay() does not differ between objects or times")
	}
	if got := Delay("1", at, 0); got != 0 {
		t.Errorf("Delay() within no time is %s", got)
	}
}
