package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
)

// usage is what the pods of control planes take, by component.
type usage map[string]landscape.ComponentUsage

// measure adds up the processes of the pods of some shoots. The processor time is since their start.
func (b *bench) measure(ctx context.Context, shoots []*corev1beta1.Shoot) (usage, error) {
	u := usage{}
	for _, shoot := range shoots {
		current := &corev1beta1.Shoot{}
		if err := b.garden.Get(ctx, client.ObjectKeyFromObject(shoot), current); err != nil {
			return nil, err
		}
		pods := &corev1.PodList{}
		if err := b.garden.List(ctx, pods, client.InNamespace(current.Status.TechnicalID)); err != nil {
			return nil, err
		}
		for _, used := range landscape.UsageOf(pods.Items)[current.Status.TechnicalID] {
			u[used.Component] = sum(u[used.Component], used)
		}
	}
	return u, nil
}

func sum(a, b landscape.ComponentUsage) landscape.ComponentUsage {
	return landscape.ComponentUsage{
		Component: b.Component, Pods: a.Pods + b.Pods, Proportional: a.Proportional + b.Proportional, Processor: a.Processor + b.Processor,
	}
}

func (u usage) print(out io.Writer, shoots int) {
	all := make([]landscape.ComponentUsage, 0, len(u))
	total := landscape.ComponentUsage{}
	for _, used := range u {
		all = append(all, used)
		total = sum(used, total)
	}
	slices.SortFunc(all, func(a, b landscape.ComponentUsage) int {
		return cmp.Or(cmp.Compare(b.Proportional, a.Proportional), cmp.Compare(a.Component, b.Component))
	})
	total.Component = "total"
	all = append(all, total)
	if shoots > 1 {
		all = append(all, landscape.ComponentUsage{
			Component: "per shoot", Pods: total.Pods / shoots, Proportional: total.Proportional / int64(shoots), Processor: total.Processor / float64(shoots),
		})
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "component\tpods\tmemory (PSS)\tCPU since start\t")
	for _, used := range all {
		fmt.Fprintf(w, "%s\t%d\t%.0f MiB\t%.1f s\t\n", used.Component, used.Pods, float64(used.Proportional)/(1<<20), used.Processor)
	}
	_ = w.Flush()
}
