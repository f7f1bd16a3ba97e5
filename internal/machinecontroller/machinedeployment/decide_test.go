package machinedeployment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func deploymentOfSize(replicas int32) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 3}}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}
	d.Spec.Template.ObjectMeta.Labels = map[string]string{"pool": "a"}
	d.Spec.Template.Spec.Class.Name = "current"
	return d
}

// set has a number of machines, some of which are available.
func set(name string, replicas, available int32) *machinev1alpha1.MachineSet {
	s := &machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	s.Spec.Replicas = replicas
	s.Spec.Template.ObjectMeta.Labels = map[string]string{"pool": "a", hashLabel: name}
	s.Spec.Template.Spec.Class.Name = name
	s.Status = machinev1alpha1.MachineSetStatus{Replicas: replicas, ReadyReplicas: available, AvailableReplicas: available, ObservedGeneration: 1}
	return s
}

func TestScale(t *testing.T) {
	paused, frozen, recreate := deploymentOfSize(3), deploymentOfSize(5), deploymentOfSize(3)
	paused.Spec.Paused = true
	frozen.Labels = map[string]string{machinev1alpha1.FreezeLabel: machinev1alpha1.LabelValueTrue}
	recreate.Spec.Strategy.Type = machinev1alpha1.RecreateMachineDeploymentStrategyType
	for name, tc := range map[string]struct {
		in   input
		want map[string]int32
	}{
		"a new one gets everything": {
			input{deployment: deploymentOfSize(3), current: set("c", 0, 0), surge: 1}, map[string]int32{"c": 3},
		},
		"one that shrinks": {input{deployment: deploymentOfSize(1), current: set("c", 3, 3)}, map[string]int32{"c": 1}},
		"an update begins with the surge": {
			input{deployment: deploymentOfSize(3), current: set("c", 0, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1},
			map[string]int32{"c": 1, "o": 3},
		},
		"it waits for new machines": {
			input{deployment: deploymentOfSize(3), current: set("c", 1, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1},
			map[string]int32{"c": 1, "o": 3},
		},
		"it continues when they are available": {
			input{deployment: deploymentOfSize(3), current: set("c", 1, 1), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1},
			map[string]int32{"c": 1, "o": 2},
		},
		"unavailable machines go at once": {
			input{deployment: deploymentOfSize(3), current: set("c", 1, 1), old: []*machinev1alpha1.MachineSet{set("o", 1, 1), set("p", 2, 1)}, surge: 1},
			map[string]int32{"c": 1, "o": 1, "p": 1},
		},
		"without a surge the old ones go first": {
			input{deployment: deploymentOfSize(3), current: set("c", 0, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, unavailable: 1},
			map[string]int32{"c": 0, "o": 2},
		},
		"scaling down deletes old ones": {
			input{deployment: deploymentOfSize(1), current: set("c", 1, 1), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1},
			map[string]int32{"c": 1, "o": 0},
		},
		"all are deleted for hibernation": {
			input{deployment: deploymentOfSize(0), current: set("c", 1, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1},
			map[string]int32{"c": 0, "o": 0},
		},
		"a paused one keeps its templates": {
			input{deployment: paused, current: set("c", 0, 0), old: []*machinev1alpha1.MachineSet{set("o", 0, 0), set("p", 2, 2)}, surge: 1},
			map[string]int32{"c": 0, "o": 0, "p": 3},
		},
		"a frozen one does not grow": {
			input{deployment: frozen, current: set("c", 3, 3), surge: 1}, map[string]int32{"c": 3},
		},
		"Recreate deletes all machines": {
			input{deployment: recreate, current: set("c", 0, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, oldMachines: 3, unavailable: 3},
			map[string]int32{"c": 0, "o": 0},
		},
		"and creates new ones when they are deleted": {
			input{deployment: recreate, current: set("c", 0, 0), old: []*machinev1alpha1.MachineSet{set("o", 0, 0)}, unavailable: 3},
			map[string]int32{"c": 3, "o": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scale(tc.in)); diff != "" {
				t.Errorf("scale() (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the bounds, and in whatever order machines become available, an update ends, and stays within the bounds.
func TestUpdatesEndAndStayWithinBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		replicas := random.Int32N(8)
		d := deploymentOfSize(replicas)
		d.Spec.Strategy.RollingUpdate = &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: machinev1alpha1.UpdateConfiguration{
			MaxSurge: new(intstr.FromInt32(random.Int32N(3))), MaxUnavailable: new(intstr.FromInt32(random.Int32N(3))),
		}}
		surge, unavailable, err := bounds(d)
		if err != nil {
			t.Fatal(err)
		}
		first := random.Int32N(replicas + 1)
		current := set("c", 0, 0)
		in := input{
			deployment: d, current: current, surge: surge, unavailable: unavailable,
			old: []*machinev1alpha1.MachineSet{set("o", first, first), set("p", replicas-first, replicas-first)},
		}
		all := []*machinev1alpha1.MachineSet{in.old[0], in.old[1], current}
		what := fmt.Sprintf("round %d: %d machines, surge %d, unavailable %d", round, replicas, surge, unavailable)
		for step := 0; ; step++ {
			if step > 200 {
				t.Fatalf("%s: no end in sight: %d/%d %d/%d %d/%d", what, all[0].Spec.Replicas, all[0].Status.AvailableReplicas,
					all[1].Spec.Replicas, all[1].Status.AvailableReplicas, current.Spec.Replicas, current.Status.AvailableReplicas)
			}
			numbers := scale(in)
			var total, working int32
			for _, s := range all {
				s.Spec.Replicas = numbers[s.Name]
				total += s.Spec.Replicas
				working += available(s)
			}
			if total > replicas+surge || working < replicas-unavailable {
				t.Fatalf("%s: there are %d machines, %d of them available", what, total, working)
			}
			if current.Spec.Replicas == replicas && total == replicas && current.Status.AvailableReplicas == replicas {
				break
			}
			// Sets report late, or a machine becomes available.
			for _, s := range all {
				if random.IntN(2) == 0 {
					s.Status.AvailableReplicas = min(s.Status.AvailableReplicas, s.Spec.Replicas)
				}
			}
			if current.Status.AvailableReplicas < current.Spec.Replicas && random.IntN(2) == 0 {
				current.Status.AvailableReplicas++
			}
		}
	}
}

func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		surge, unavailable         *intstr.IntOrString
		wantSurge, wantUnavailable int32
		bad                        bool
	}{
		"default":                            {nil, nil, 1, 1, false},
		"numbers":                            {new(intstr.FromInt32(2)), new(intstr.FromInt32(0)), 2, 0, false},
		"percentages are rounded for safety": {new(intstr.FromString("15%")), new(intstr.FromString("15%")), 2, 1, false},
		"both zero":                          {new(intstr.FromInt32(0)), new(intstr.FromString("1%")), 0, 1, false},
		"more unavailable than replicas":     {new(intstr.FromInt32(0)), new(intstr.FromInt32(99)), 0, 10, false},
		"invalid":                            {new(intstr.FromString("many")), nil, 0, 0, true},
		"negative":                           {new(intstr.FromInt32(-1)), new(intstr.FromInt32(1)), 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploymentOfSize(10)
			d.Spec.Strategy.RollingUpdate = &machinev1alpha1.RollingUpdateMachineDeployment{
				UpdateConfiguration: machinev1alpha1.UpdateConfiguration{MaxSurge: tc.surge, MaxUnavailable: tc.unavailable},
			}
			surge, unavailable, err := bounds(d)
			if surge != tc.wantSurge || unavailable != tc.wantUnavailable || (err != nil) != tc.bad {
				t.Errorf("got %d, %d, %v", surge, unavailable, err)
			}
		})
	}
}

func TestNodesOfOldMachinesKeepTheirLabels(t *testing.T) {
	d := deploymentOfSize(1)
	d.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{"version": "new"}
	d.Spec.Template.Spec.MachineConfiguration.DrainTimeout = &metav1.Duration{Duration: time.Minute}
	for current, want := range map[bool]string{true: "new", false: "old"} {
		s := set("a", 1, 1)
		s.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{"version": "old"}
		got := withTemplate(d, s, current).Spec.Template.Spec
		if got.NodeTemplate.ObjectMeta.Labels["version"] != want || got.MachineConfiguration.DrainTimeout == nil {
			t.Errorf("current %v: template is %+v", current, got)
		}
	}
}

// A set knows up to when its replicas count what the cluster-autoscaler has chosen.
func TestTimeOfTheAutoscalerReachesSets(t *testing.T) {
	d := &machinev1alpha1.MachineDeployment{}
	if got := withTemplate(d, &machinev1alpha1.MachineSet{}, true); got.Annotations != nil {
		t.Errorf("annotations %v without a time", got.Annotations)
	}
	d.Annotations = map[string]string{machinev1alpha1.LastDeploymentReplicaChangeByScalerTime: "2026-01-02T03:04:05Z"}
	for _, current := range []bool{true, false} {
		if got := withTemplate(d, &machinev1alpha1.MachineSet{}, current).Annotations; got[machinev1alpha1.LastDeploymentReplicaChangeByScalerTime] != "2026-01-02T03:04:05Z" {
			t.Errorf("annotations %v", got)
		}
	}
}

func TestCurrentAndOld(t *testing.T) {
	d := deploymentOfSize(1)
	a, b, c := set("a", 1, 1), set("current", 1, 1), set("c", 1, 1)
	a.Annotations = map[string]string{machineset.RevisionAnnotation: "7"}
	b.Annotations = map[string]string{machineset.RevisionAnnotation: "2"}
	c.Annotations = map[string]string{machineset.RevisionAnnotation: "1"}
	// Changes that do not need new machines do not count.
	d.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{"new": "1"}
	d.Spec.Template.Spec.MachineConfiguration.DrainTimeout = &metav1.Duration{Duration: time.Minute}
	current, old := currentAndOld(d, []*machinev1alpha1.MachineSet{a, b, c})
	if current != b || len(old) != 2 || old[0] != c || old[1] != a {
		t.Fatalf("current is %v, old are %v", current, old)
	}
	if got := nextRevision(current, old); got != 8 {
		t.Errorf("next revision is %d", got)
	}
	b.Annotations[machineset.RevisionAnnotation] = "8"
	if got := nextRevision(current, old); got != 8 {
		t.Errorf("the revision of a current set changes to %d", got)
	}
	if got := nextRevision(nil, nil); got != 1 {
		t.Errorf("the first revision is %d", got)
	}

	d.Spec.RollbackTo = &machinev1alpha1.RollbackConfig{}
	if got := rollbackTemplate(d, current, old); got == nil || got.Spec.Class.Name != "a" || got.ObjectMeta.Labels[hashLabel] != "" {
		t.Errorf("rolls back to %+v", got)
	}
	d.Spec.RollbackTo.Revision = 1
	if got := rollbackTemplate(d, current, old); got == nil || got.Spec.Class.Name != "c" {
		t.Errorf("rolls back to %+v", got)
	}
	d.Spec.RollbackTo.Revision = 5
	if got := rollbackTemplate(d, current, old); got != nil {
		t.Errorf("rolls back to %+v", got)
	}
}

func TestNewSet(t *testing.T) {
	d := deploymentOfSize(3)
	first, err := newSet(d, 4)
	if err != nil {
		t.Fatal(err)
	}
	h := first.Labels[hashLabel]
	if first.Name != "d-"+h || first.Spec.Selector.MatchLabels[hashLabel] != h || first.Spec.Template.ObjectMeta.Labels[hashLabel] != h || first.Spec.Replicas != 0 {
		t.Errorf("set is %+v", first)
	}
	if current, _ := currentAndOld(d, []*machinev1alpha1.MachineSet{first}); current != first {
		t.Error("the set is not that of its deployment")
	}
	d.Status.CollisionCount = new(int32(1))
	if second, _ := newSet(d, 4); second.Name == first.Name {
		t.Error("a collision does not change the name")
	}
}

func TestExpired(t *testing.T) {
	d := deploymentOfSize(1)
	d.Spec.RevisionHistoryLimit = new(int32(1))
	got := expired(d, []*machinev1alpha1.MachineSet{set("a", 0, 0), set("b", 1, 1), set("c", 0, 0), set("d", 0, 0)})
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("got %v", got)
	}
}

// reasonOf is the status and the reason of a condition.
func reasonOf(s machinev1alpha1.MachineDeploymentStatus, typ machinev1alpha1.MachineDeploymentConditionType) string {
	for _, c := range s.Conditions {
		if c.Type == typ {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func TestStatus(t *testing.T) {
	d := deploymentOfSize(3)
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	in := input{deployment: d, current: set("c", 1, 0), old: []*machinev1alpha1.MachineSet{set("o", 3, 3)}, surge: 1, oldMachines: 3}
	got, recheck := status(in, errors.New("no"), now)
	if got.Replicas != 4 || got.UpdatedReplicas != 1 || got.AvailableReplicas != 3 || got.UnavailableReplicas != 0 || got.ObservedGeneration != 3 {
		t.Errorf("status is %+v", got)
	}
	for typ, want := range map[machinev1alpha1.MachineDeploymentConditionType]string{
		machinev1alpha1.MachineDeploymentAvailable: "True MinimumReplicasAvailable", machinev1alpha1.MachineDeploymentProgressing: "True MachineSetUpdated",
		machinev1alpha1.MachineDeploymentReplicaFailure: "True MachinesNotChanged",
	} {
		if got := reasonOf(got, typ); got != want {
			t.Errorf("%s is %q, want %q", typ, got, want)
		}
	}
	if recheck != 10*time.Minute {
		t.Errorf("recheck is %s", recheck)
	}
	// The same again writes nothing, until the deadline has passed.
	d.Status = got
	again, recheck := status(in, errors.New("no"), now.Add(4*time.Minute))
	if diff := cmp.Diff(got, again); diff != "" || recheck != 6*time.Minute {
		t.Errorf("recheck is %s (-before +after):\n%s", recheck, diff)
	}
	late, _ := status(in, nil, now.Add(10*time.Minute))
	if got := reasonOf(late, machinev1alpha1.MachineDeploymentProgressing); got != "False ProgressDeadlineExceeded" {
		t.Errorf("Progressing is %q", got)
	}
	if got := reasonOf(late, machinev1alpha1.MachineDeploymentReplicaFailure); got != "" {
		t.Errorf("ReplicaFailure is %q", got)
	}
	// The deadline stays exceeded, instead of beginning again.
	d.Status = late
	later, _ := status(in, nil, now.Add(15*time.Minute))
	if diff := cmp.Diff(late, later); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	done, _ := status(input{deployment: d, current: set("c", 3, 3), surge: 1}, nil, now)
	if got := reasonOf(done, machinev1alpha1.MachineDeploymentProgressing); got != "True NewMachineSetAvailable" {
		t.Errorf("Progressing is %q", got)
	}
	// Nothing has to be done about failed machines that are kept, and the cluster-autoscaler does not wait for them.
	keeps := set("c", 3, 2)
	keeps.Status.PreservedFailedReplicas = 1
	kept, _ := status(input{deployment: d, current: keeps, surge: 1}, nil, now)
	if got := reasonOf(kept, machinev1alpha1.MachineDeploymentProgressing); got != "True NewMachineSetAvailable" || kept.PreservedFailedReplicas != 1 {
		t.Errorf("Progressing is %q with %d kept machines", got, kept.PreservedFailedReplicas)
	}
	// An update that has ended stays so, until the template changes again.
	d.Status = done
	for name, tc := range map[string]struct {
		in   input
		want string
	}{
		"a machine is not available": {in: input{deployment: d, current: set("c", 3, 2), surge: 1}, want: "True NewMachineSetAvailable"},
		"it is scaled up":            {in: input{deployment: d, current: set("c", 2, 2), surge: 1}, want: "True NewMachineSetAvailable"},
		"a new template": {
			in:   input{deployment: d, current: set("n", 0, 0), old: []*machinev1alpha1.MachineSet{set("c", 3, 3)}, surge: 1, oldMachines: 3},
			want: "True MachineSetUpdated",
		},
		"an old machine is being deleted": {in: input{deployment: d, current: set("n", 3, 3), surge: 1, oldMachines: 1}, want: "True MachineSetUpdated"},
	} {
		after, _ := status(tc.in, nil, now.Add(time.Hour))
		if got := reasonOf(after, machinev1alpha1.MachineDeploymentProgressing); got != tc.want {
			t.Errorf("%s: Progressing is %q, want %q", name, got, tc.want)
		}
	}
	// A frozen one has the reason in its condition.
	overshoots := set("c", 3, 3)
	overshoots.Status.Conditions = []machinev1alpha1.MachineSetCondition{{Type: machinev1alpha1.MachineSetFrozen, Reason: "TooMany"}}
	frozen, _ := status(input{deployment: d, current: overshoots, surge: 1}, nil, now)
	if got := reasonOf(frozen, machinev1alpha1.MachineDeploymentFrozen); got != "True TooMany" {
		t.Errorf("Frozen is %q", got)
	}
}
