package gardenctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// allocatableShoots is the resource of Seeds with how many shoots the scheduler may put on them.
const allocatableShoots = "shoots"

// seedColumns are the columns of seeds in their order. Those without a value are the garden's.
var seedColumns = []struct {
	name  string
	wide  bool
	value func(*corev1beta1.Seed, map[string]int) string
}{
	{name: "Name"},
	{name: "Status"},
	{name: "Provider"},
	{name: "Region"},
	{name: "Version"},
	{name: "K8S Version"},
	{name: "Shoots", value: usedShoots},
	{name: "Age"},
	{name: "Gardenlet", wide: true, value: conditionOf(corev1beta1.SeedGardenletReady)},
	{name: "System Components", wide: true, value: conditionOf(corev1beta1.SeedSystemComponentsHealthy)},
	{name: "Extensions", wide: true, value: conditionOf(corev1beta1.SeedExtensionsReady)},
	{name: "Backup Buckets", wide: true, value: conditionOf(corev1beta1.SeedBackupBucketsReady)},
	{name: "Last Operation", wide: true},
	{name: "Zones", wide: true, value: func(s *corev1beta1.Seed, _ map[string]int) string {
		return strings.Join(s.Spec.Provider.Zones, ",")
	}},
	{name: "Backup", wide: true, value: func(s *corev1beta1.Seed, _ map[string]int) string {
		if s.Spec.Backup == nil {
			return ""
		}
		return s.Spec.Backup.Provider
	}},
	{name: "Taints", wide: true, value: func(s *corev1beta1.Seed, _ map[string]int) string {
		keys := make([]string, 0, len(s.Spec.Taints))
		for _, taint := range s.Spec.Taints {
			keys = append(keys, taint.Key)
		}
		return strings.Join(keys, ",")
	}},
}

// usedShoots is how many shoots a seed has, and may have. The number is unknown without counts.
func usedShoots(seed *corev1beta1.Seed, counts map[string]int) string {
	used, limit := "?", none
	if counts != nil {
		used = fmt.Sprint(counts[seed.Name])
	}
	if allocatable, limited := seed.Status.Allocatable[allocatableShoots]; limited {
		limit = allocatable.String()
	}
	return used + "/" + limit
}

func conditionOf(conditionType corev1beta1.ConditionType) func(*corev1beta1.Seed, map[string]int) string {
	return func(s *corev1beta1.Seed, _ map[string]int) string {
		if condition := kube.Condition(s.Status.Conditions, conditionType); condition != nil {
			return string(condition.Status)
		}
		return ""
	}
}

// seedTable arranges the garden's table of seeds, whose rows have the Seeds, and adds columns.
func seedTable(table *metav1.Table, counts map[string]int) (*metav1.Table, error) {
	out := &metav1.Table{}
	for _, column := range seedColumns {
		definition := metav1.TableColumnDefinition{Name: column.name}
		if column.wide {
			definition.Priority = 1
		}
		out.ColumnDefinitions = append(out.ColumnDefinitions, definition)
	}
	for _, row := range table.Rows {
		seed := &corev1beta1.Seed{}
		if err := json.Unmarshal(row.Object.Raw, seed); err != nil {
			return nil, fmt.Errorf("read the response of the garden: %w", err)
		}
		cells := make([]any, 0, len(seedColumns))
		for _, column := range seedColumns {
			if column.value != nil {
				cells = append(cells, cmp.Or(column.value(seed, counts), none))
				continue
			}
			at := slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return d.Name == column.name })
			if at < 0 || at >= len(row.Cells) { // a garden of another version
				cells = append(cells, none)
				continue
			}
			cells = append(cells, row.Cells[at])
		}
		out.Rows = append(out.Rows, metav1.TableRow{Cells: cells, Object: row.Object})
	}
	return out, nil
}

// countShoots returns how many shoots seeds have, by their names: those on a seed, and those that move to it. With a name, shoots of other seeds are not
// read. It is nil if the user may not list shoots.
func (c *cli) countShoots(ctx context.Context, g *garden, seed string) (map[string]int, error) {
	counts := map[string]int{}
	options := client.ListOptions{Limit: pageSize}
	if seed != "" {
		client.MatchingLabels{constants.PrefixSeedName + seed: "true"}.ApplyToList(&options)
	}
	for first := true; first || options.Continue != ""; first = false {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
		if err := c.listPage(ctx, g, page, &options); apierrors.IsForbidden(err) {
			fmt.Fprintln(c.ErrOut, "warning: shoots are not counted, as you may not list those of all projects")
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		for _, shoot := range page.Items {
			for key := range shoot.Labels {
				if name, ok := strings.CutPrefix(key, constants.PrefixSeedName); ok {
					counts[name]++
				}
			}
		}
		options.Continue = page.Continue
	}
	return counts, nil
}

func (c *cli) listPage(ctx context.Context, g *garden, page client.ObjectList, options *client.ListOptions) error {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	return g.client.List(ctx, page, options)
}
