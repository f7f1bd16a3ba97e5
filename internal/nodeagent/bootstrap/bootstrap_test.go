package bootstrap

import (
	"errors"
	"testing"

	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd/fake"
)

func TestRun(t *testing.T) {
	root, units := rootfs.Dir(t.TempDir()), &fake.Systemd{}
	units.Set("gardener-node-init.service", func(u *fake.Unit) { u.Enabled, u.Running = true, true })
	for range 2 { // it may be repeated
		if err := Run(t.Context(), root, units, nil); err != nil {
			t.Fatal(err)
		}
	}
	if u := units.Unit("gardener-node-agent.service"); !u.Running || !u.Enabled || !root.Exists(unitFile) {
		t.Errorf("the agent's unit is %+v", u)
	}
	if u := units.Unit("gardener-node-init.service"); u.Enabled || !u.Running {
		t.Errorf("the unit that this runs in is %+v", u)
	}
	if units.Reloads() != 2 {
		t.Errorf("units were read %d times", units.Reloads())
	}
}

func TestInitUnitStaysEnabledUntilTheAgentRuns(t *testing.T) {
	root, units, broken := rootfs.Dir(t.TempDir()), &fake.Systemd{}, errors.New("broken")
	units.Set("gardener-node-init.service", func(u *fake.Unit) { u.Enabled = true })
	units.Set("gardener-node-agent.service", func(u *fake.Unit) { u.Fails = broken })
	if err := Run(t.Context(), root, units, nil); !errors.Is(err, broken) {
		t.Fatalf("error is %v", err)
	}
	if !units.Unit("gardener-node-init.service").Enabled {
		t.Error("the machine would not run the agent after its next boot")
	}
}

func TestChoose(t *testing.T) {
	boot := disk{Path: "/dev/vda", Type: "disk", Size: 10, Children: []disk{{Path: "/dev/vda1", Type: "part", Size: 10}}}
	empty := disk{Path: "/dev/vdb", Type: "disk", Size: 10}
	ready := disk{Path: "/dev/vdc", Type: "disk", Size: 10, Label: new(diskLabel), FSType: new("ext4")}
	mounted := disk{Path: "/dev/vdd", Type: "disk", Size: 10, Mountpoints: []*string{nil, new("/data")}}
	for name, tc := range map[string]struct {
		disks  []disk
		want   string
		format bool
	}{
		"an empty one":                  {disks: []disk{boot, mounted, empty}, want: "/dev/vdb", format: true},
		"one that was formatted before": {disks: []disk{boot, empty, ready}, want: "/dev/vdc"},
		"none that is empty":            {disks: []disk{boot, mounted}},
		"none of the size":              {disks: []disk{{Path: "/dev/vde", Type: "disk", Size: 11}}},
		"none that is a disk":           {disks: []disk{{Path: "/dev/sr0", Type: "rom", Size: 10}}},
		"none that has no file system":  {disks: []disk{{Path: "/dev/vdf", Type: "disk", Size: 10, FSType: new("xfs")}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, format, err := choose(tc.disks, 10)
			if got.Path != tc.want || format != tc.format || (err != nil) != (tc.want == "") {
				t.Errorf("choose() = %s, %v, %v", got.Path, format, err)
			}
		})
	}
}
