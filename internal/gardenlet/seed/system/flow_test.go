package system

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/test/golden"
)

func TestFlows(t *testing.T) {
	r := &reconciler{}
	for name, spec := range map[string]corev1beta1.SeedSpec{
		"plain": {}, "backup": {Backup: &corev1beta1.Backup{}},
		"autoscaled": {Settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := r.newFlow(&corev1beta1.Seed{Spec: spec}, extensions{}, false)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+".txt", f.String())
		})
	}
	two := extensions{desired: []extension.Extension{{Type: "a"}}, stale: []extension.Extension{{Type: "b"}}}
	f, err := r.newFlow(&corev1beta1.Seed{}, two, false)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/extensions.txt", f.String())
	if f, err = r.newExtensionDeletion(&corev1beta1.Seed{}, two); err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion-extensions.txt", f.String())
	f, err = r.newDeletion(&corev1beta1.Seed{}, false)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion.txt", f.String())
	f, err = r.newFlow(&corev1beta1.Seed{}, two, true)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/garden.txt", f.String())
	f, err = r.newDeletion(&corev1beta1.Seed{}, true)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion-garden.txt", f.String())
}
