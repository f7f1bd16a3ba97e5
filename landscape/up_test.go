package landscape

import "testing"

func TestNeededMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		options UpOptions
		running bool
		want    int64
	}{
		"a landscape with a shoot":         {options: UpOptions{Shoot: true}, want: 5 << 30},
		"a shoot for what runs":            {options: UpOptions{Shoot: true}, running: true, want: 2 << 30},
		"a landscape without a shoot":      {want: 2 << 30},
		"a second cluster beside the rest": {options: UpOptions{Cluster: "seed2"}, running: true, want: 2 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := neededMemory(tc.options, tc.running); got != tc.want {
				t.Errorf("neededMemory() = %d, want %d", got, tc.want)
			}
		})
	}
}
