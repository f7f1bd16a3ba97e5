package operatingsystemconfig

import (
	"context"
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/systemd/fake"
)

// editing is a systemd whose app.service has a script that edits a file before it starts.
type editing struct {
	*fake.Systemd
	edit func()
}

func (e editing) Restart(ctx context.Context, unit string) error {
	if unit == "app.service" {
		e.edit()
	}
	return e.Systemd.Restart(ctx, unit)
}

// An extension for an operating system may adapt a file of a unit with a script in ExecStartPre, such as the configuration of the kubelet. It stays, and the
// unit is not restarted in each pass.
func TestFilesThatUnitsEditStay(t *testing.T) {
	m, script := newMachine(t), "-edited"
	m.Systemd = editing{Systemd: m.systemd, edit: func() { m.write("/etc/app", m.files()["/etc/app"]+script) }}
	osc := example()
	osc.Spec.Units[1].DropIns = []extensionsv1alpha1.DropIn{{Name: "10-script.conf", Content: "script"}}
	starts := map[string]int{}
	for _, step := range []struct {
		name     string
		do       func()
		restarts int
		want     string
	}{
		{name: "a new machine", do: func() {}, restarts: 1, want: "config-edited"},
		{name: "nothing", do: func() {}, want: "config-edited"},
		{name: "somebody else changes the file", do: func() { m.write("/etc/app", "mine") }, restarts: 1, want: "config-edited"},
		{name: "its permissions change", do: func() {
			if err := os.Chmod(m.Root.Path("/etc/app"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, restarts: 1, want: "config-edited"},
		{name: "the configuration changes", do: func() { osc.Spec.Files[0] = inline("/etc/app", "new") }, restarts: 1, want: "new-edited"},
		{name: "the script changes", do: func() { script, osc.Spec.Units[1].DropIns[0].Content = "-again", "other" }, restarts: 1, want: "new-again"},
		{name: "the script is removed", do: func() { script, osc.Spec.Units[1].DropIns = "", nil }, restarts: 1, want: "new"},
		{name: "the unit and the file are removed", do: func() {
			osc.Spec.Units = append(osc.Spec.Units[:1:1], osc.Spec.Units[2:]...)
			osc.Spec.Files = osc.Spec.Files[2:]
		}},
	} {
		step.do()
		for range 2 { // the second pass changes nothing
			m.mustApply(osc)
			if got := m.files()["/etc/app"]; got != step.want {
				t.Errorf("%s: the file is %q, want %q", step.name, got, step.want)
			}
		}
		now := maps.Clone(m.systemd.Starts())
		if got := now["app.service"] - starts["app.service"]; got != step.restarts {
			t.Errorf("%s: the unit was started %d times, want %d", step.name, got, step.restarts)
		}
		starts = now
	}
	p := &pass{reconciler: m.reconciler}
	if err := p.readEdits(); err != nil || len(p.edits) != 0 {
		t.Errorf("known edits are %v (%v)", p.edits, err)
	}
	if diff := cmp.Diff(1, starts["system.service"]); diff != "" {
		t.Errorf("starts of another unit (-want +got):\n%s", diff)
	}
}
