package operatingsystemconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

type (
	unit = extensionsv1alpha1.Unit
	file = extensionsv1alpha1.File
)

func TestMerge(t *testing.T) {
	data := func(s string) extensionsv1alpha1.FileContent {
		return extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: s}}
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.Units = []unit{
		{Name: "a.service", Content: new("a"), Enable: new(true), FilePaths: []string{"/a"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "1"}}},
		{Name: "b.service"},
	}
	osc.Status.ExtensionUnits = []unit{
		{Name: "a.service", Enable: new(false), FilePaths: []string{"/x"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "one"}, {Name: "2.conf", Content: "2"}}},
		{Name: "c.service"},
	}
	osc.Spec.Files = []file{{Path: "/a", Content: data("a")}, {Path: "/b", Content: data("b")}, {Path: "/n", HostName: new("other")}, {Path: "/m", HostName: new("me")}}
	osc.Status.ExtensionFiles = []file{{Path: "/a", Content: data("A")}}
	units, files := merge(osc, "me")
	if diff := cmp.Diff([]unit{
		{Name: "a.service", Content: new("a"), Enable: new(false), FilePaths: []string{"/a", "/x"}, DropIns: []extensionsv1alpha1.DropIn{{Name: "1.conf", Content: "one"}, {Name: "2.conf", Content: "2"}}},
		{Name: "b.service"},
		{Name: "c.service"},
	}, units); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]file{{Path: "/b", Content: data("b")}, {Path: "/m", HostName: new("me")}, {Path: "/a", Content: data("A")}}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(osc.Spec.Units[0].DropIns) != 1 {
		t.Error("the configuration itself was changed")
	}
}

func TestWaitFor(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		first      bool
		annotation string
		seen       time.Time
		want       time.Duration
	}{
		"a new machine does not wait":   {first: true, annotation: "1m", seen: now},
		"the delay of the annotation":   {annotation: "1m", seen: now, want: time.Minute},
		"since the change was observed": {annotation: "1m", seen: now.Add(-20 * time.Second), want: 40 * time.Second},
		"the delay is over":             {annotation: "1m", seen: now.Add(-2 * time.Minute)},
		"no annotation":                 {seen: now},
		"an invalid annotation":         {annotation: "soon", seen: now},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waitFor(tc.first, tc.annotation, tc.seen, now); got != tc.want {
				t.Errorf("waitFor() = %s, want %s", got, tc.want)
			}
		})
	}
}
