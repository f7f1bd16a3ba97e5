package gardenrbac

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", Objects())
}

// A virtual garden has the same roles as any other garden, and a namespace that stays when the garden is deleted.
func TestVirtual(t *testing.T) {
	objects := Virtual()
	golden.Objects(t, "virtual.yaml", objects[:1])
	if diff := cmp.Diff(Objects(), objects[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every aggregated role selects other roles with each of its selectors.
func TestAggregation(t *testing.T) {
	roles := map[string]*rbacv1.ClusterRole{}
	for _, object := range Objects() {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			roles[role.Name] = role
		}
	}
	got := map[string][]string{}
	for name, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		for _, by := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&by)
			if err != nil {
				t.Fatal(err)
			}
			for other, part := range roles {
				if selector.Matches(labels.Set(part.Labels)) {
					got[name] = append(got[name], other)
				}
			}
		}
		slices.Sort(got[name])
	}
	const system = "gardener.cloud:system:"
	want := map[string][]string{
		system + "administrators":                {"gardener.cloud:admin", system + "project-member", system + "project-serviceaccountmanager"},
		system + "viewers":                       {system + "project-viewer", "gardener.cloud:viewer"},
		system + "project-member":                {system + "project-member-aggregation"},
		system + "project-viewer":                {system + "project-viewer-aggregation"},
		system + "project-serviceaccountmanager": {system + "project-serviceaccountmanager-aggregation"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What gardenlets may do is decided by gardener-admission-controller: with a role, each could access the objects of all seeds.
func TestGardenletsHaveNoRoles(t *testing.T) {
	for _, object := range Objects() {
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		}
		for _, subject := range subjects {
			if subject.Name == constants.SeedsGroup || subject.Name == constants.ShootsGroup {
				t.Errorf("%T %s grants something to %s", object, object.GetName(), subject.Name)
			}
		}
	}
}
