package machineset

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func setOf(replicas int32) *machinev1alpha1.MachineSet {
	set := &machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s", Generation: 2}}
	set.Spec.Replicas = replicas
	set.Spec.Template.ObjectMeta.Labels = map[string]string{"pool": "a"}
	return set
}

func machine(name string, phase machinev1alpha1.MachinePhase, changes ...func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}}}
	m.Spec.ProviderID = "fake:///" + name
	m.Status.CurrentStatus = machinev1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(now.Add(-time.Minute))}
	for _, change := range changes {
		change(m)
	}
	return m
}

func deleting(m *machinev1alpha1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }

func created(ago time.Duration) func(*machinev1alpha1.Machine) {
	return func(m *machinev1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-ago)) }
}

func marked(priority string) func(*machinev1alpha1.Machine) {
	return func(m *machinev1alpha1.Machine) {
		m.Annotations = map[string]string{machinev1alpha1.MachinePriority: priority}
	}
}

func TestDecide(t *testing.T) {
	const (
		running = machinev1alpha1.MachineRunning
		pending = machinev1alpha1.MachinePending
		unknown = machinev1alpha1.MachineUnknown
		failed  = machinev1alpha1.MachineFailed
		updated = machinev1alpha1.MachineInPlaceUpdateSuccessful
	)
	moving := func(m *machinev1alpha1.Machine) {
		m.Labels = map[string]string{machinev1alpha1.NodeUpdateResult: machinev1alpha1.NodeUpdateSuccessful}
	}
	disabled := setOf(3)
	disabled.Labels = map[string]string{machinev1alpha1.MachineSetScaleUpDisabled: "true"}
	gone := setOf(3)
	gone.DeletionTimestamp = new(metav1.NewTime(now))
	scaled := func(replicas int32, at time.Time) *machinev1alpha1.MachineSet {
		set := setOf(replicas)
		set.Annotations = map[string]string{machinev1alpha1.LastDeploymentReplicaChangeByScalerTime: at.Format(time.RFC3339)}
		return set
	}
	chosen := func(priority string) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			m.Annotations = map[string]string{machinev1alpha1.MachinePriority: priority, machinev1alpha1.MarkedForDeletionTime: now.Format(time.RFC3339)}
		}
	}
	three := func(priority string) []*machinev1alpha1.Machine {
		return []*machinev1alpha1.Machine{machine("a", running), machine("b", running, chosen(priority)), machine("c", running)}
	}
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []*machinev1alpha1.Machine
		create   int
		delete   []string
	}{
		"all are missing":                                       {set: setOf(3), create: 3},
		"no more than a burst":                                  {set: setOf(30), create: 5},
		"enough":                                                {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", pending)}},
		"a failed one is replaced":                              {set: setOf(2), machines: []*machinev1alpha1.Machine{machine("a", failed), machine("b", running)}, create: 1, delete: []string{"a"}},
		"a deleted one does not count":                          {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running, deleting)}, create: 1},
		"scaling up is disabled":                                {set: disabled},
		"the set is being deleted":                              {set: gone},
		"the unhealthy go first":                                {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running), machine("b", unknown), machine("c", pending)}, delete: []string{"b", "c"}},
		"the newest go first":                                   {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running, created(time.Hour)), machine("b", running, created(time.Minute))}, delete: []string{"b"}},
		"a low priority goes first":                             {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running, marked("1")), machine("b", unknown)}, delete: []string{"a"}},
		"a high priority goes last":                             {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", unknown, marked("5")), machine("b", running)}, delete: []string{"b"}},
		"one that is moving does not count yet":                 {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running), machine("b", updated, moving)}},
		"one that is moving counts":                             {set: setOf(2), machines: []*machinev1alpha1.Machine{machine("a", running), machine("b", updated, moving)}},
		"one that is moving is not enough":                      {set: setOf(3), machines: []*machinev1alpha1.Machine{machine("a", running), machine("b", updated, moving)}, create: 1},
		"one that is moving stays":                              {set: setOf(0), machines: []*machinev1alpha1.Machine{machine("a", running), machine("b", updated, moving)}, delete: []string{"a"}},
		"chosen by the autoscaler":                              {set: scaled(2, now), machines: three("1"), delete: []string{"b"}},
		"chosen, and replicas were raised since":                {set: scaled(3, now), machines: three("1"), create: 1, delete: []string{"b"}},
		"chosen, before replicas of the set changed":            {set: scaled(3, now.Add(-time.Second)), machines: three("1")},
		"chosen, and replicas of the set were never changed":    {set: setOf(3), machines: three("1")},
		"chosen before, the user has given it another priority": {set: scaled(3, now), machines: three("5")},
		"an invalid priority is ignored":                        {set: setOf(1), machines: []*machinev1alpha1.Machine{machine("a", running, marked("x")), machine("b", unknown)}, delete: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.set, tc.machines, 5, false, now)
			var names []string
			for _, m := range got.delete {
				names = append(names, m.Name)
			}
			if diff := cmp.Diff(tc.delete, names); diff != "" || got.create != tc.create {
				t.Errorf("creates %d, want %d; deletes (-want +got):\n%s", got.create, tc.create, diff)
			}
		})
	}
}

// Failed machines are kept if the user wants that, and the newest ones automatically, but not while machines are replaced. They count, and go last.
func TestKeep(t *testing.T) {
	const running, failed = machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed
	most := func(n int32) func(*machinev1alpha1.MachineSet) {
		return func(s *machinev1alpha1.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = &n }
	}
	by := func(value string) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machinev1alpha1.PreserveMachine, value)
		}
	}
	until := func(d time.Duration) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			m.Status.CurrentStatus.PreserveExpiryTime = new(metav1.NewTime(now.Add(d)))
		}
	}
	since := func(d time.Duration) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-d))
		}
	}
	lost := func(m *machinev1alpha1.Machine) {
		m.Status.LastOperation = machinev1alpha1.LastOperation{State: machinev1alpha1.MachineStateFailed, ErrorCode: "NotFound"}
	}
	notCreated := func(m *machinev1alpha1.Machine) { m.Spec.ProviderID = "" }
	marked := func(m *machinev1alpha1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, machinev1alpha1.MachinePriority, "1")
	}
	const auto, whenFailed, always, never = machinev1alpha1.PreserveAuto, machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveNow, machinev1alpha1.PreserveFalse
	type result struct {
		create           int
		delete, preserve []string
		recheck          time.Duration
	}
	for name, tc := range map[string]struct {
		replicas int32
		change   func(*machinev1alpha1.MachineSet)
		machines []*machinev1alpha1.Machine
		rolls    bool
		want     result
	}{
		"for the user":                      {1, nil, []*machinev1alpha1.Machine{machine("a", failed, by(whenFailed), until(time.Hour))}, false, result{recheck: time.Hour}},
		"for the user before there is time": {1, nil, []*machinev1alpha1.Machine{machine("a", failed, by(always))}, false, result{}},
		"until the time is over":            {1, nil, []*machinev1alpha1.Machine{machine("a", failed, by(whenFailed), until(0))}, false, result{create: 1, delete: []string{"a"}}},
		"until the user says no":            {1, nil, []*machinev1alpha1.Machine{machine("a", failed, by(never), until(time.Hour))}, false, result{create: 1, delete: []string{"a"}}},
		"until the annotation was removed":  {1, nil, []*machinev1alpha1.Machine{machine("a", failed)}, false, result{create: 1, delete: []string{"a"}}},
		"automatically, the newest": {3, most(2), []*machinev1alpha1.Machine{
			machine("a", failed, since(time.Hour)), machine("b", failed, since(time.Minute)), machine("c", failed, since(time.Second)),
		}, false, result{create: 1, delete: []string{"a"}, preserve: []string{"b", "c"}}},
		"automatically, beside those of the user": {3, most(1), []*machinev1alpha1.Machine{
			machine("a", failed, by(whenFailed)), machine("b", failed), machine("c", running),
		}, false, result{preserve: []string{"b"}}},
		"automatically, up to the maximum": {2, most(1), []*machinev1alpha1.Machine{
			machine("a", failed, by(auto), until(time.Hour)), machine("b", failed),
		}, false, result{create: 1, delete: []string{"b"}, recheck: time.Hour}},
		"not more when the maximum was lowered": {3, most(1), []*machinev1alpha1.Machine{
			machine("a", failed, by(auto), until(2*time.Hour)), machine("b", failed, by(auto), until(time.Hour)), machine("c", failed, by(auto)),
		}, false, result{create: 2, delete: []string{"a", "b"}}},
		"not with an invalid maximum": {2, most(-1), []*machinev1alpha1.Machine{
			machine("a", failed), machine("b", failed, by(auto), until(time.Hour)),
		}, false, result{create: 2, delete: []string{"a", "b"}}},
		"not if the user says no": {1, most(1), []*machinev1alpha1.Machine{machine("a", failed, by(never))}, false, result{create: 1, delete: []string{"a"}}},
		"not once more":           {1, most(1), []*machinev1alpha1.Machine{machine("a", failed, until(-time.Hour))}, false, result{create: 1, delete: []string{"a"}}},
		"not what is lost":        {1, most(1), []*machinev1alpha1.Machine{machine("a", failed, lost)}, false, result{create: 1, delete: []string{"a"}}},
		"not what was never created": {1, most(1), []*machinev1alpha1.Machine{machine("a", failed, by(always), notCreated)}, false, result{
			create: 1, delete: []string{"a"},
		}},
		"not while machines are replaced": {3, most(1), []*machinev1alpha1.Machine{
			machine("a", failed), machine("b", failed, by(auto), until(time.Hour)), machine("c", failed, by(always), until(time.Hour)),
		}, true, result{create: 3, delete: []string{"a", "b", "c"}}},
		"by its Node": {1, nil, []*machinev1alpha1.Machine{machine("a", failed, by(never), func(m *machinev1alpha1.Machine) {
			m.Annotations[machinev1alpha1.LastAppliedNodePreserveValue] = whenFailed
		})}, false, result{}},
		"they go last, those of users after others": {2, most(2), []*machinev1alpha1.Machine{
			machine("a", running, by(always), until(time.Minute)), machine("b", failed, by(auto), until(time.Hour)), machine("c", failed, by(auto), until(2*time.Hour)),
			machine("d", running),
		}, false, result{delete: []string{"d", "b"}, recheck: time.Hour}},
		"those that are marked go first": {1, nil, []*machinev1alpha1.Machine{
			machine("a", running, by(always), until(time.Hour), marked), machine("b", running),
		}, false, result{delete: []string{"a"}}},
		"they go as others while machines are replaced": {1, nil, []*machinev1alpha1.Machine{
			machine("a", machinev1alpha1.MachineUnknown, by(always), until(time.Hour)), machine("b", running),
		}, true, result{delete: []string{"a"}}},
		"a hibernated shoot has none": {0, most(1), []*machinev1alpha1.Machine{
			machine("a", failed, by(auto), until(time.Hour)), machine("b", failed),
		}, false, result{delete: []string{"b", "a"}, recheck: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(tc.replicas)
			if tc.change != nil {
				tc.change(set)
			}
			p := decide(set, tc.machines, 5, tc.rolls, now)
			got := result{create: p.create, recheck: p.recheck}
			for _, m := range p.delete {
				got.delete = append(got.delete, m.Name)
			}
			for _, m := range p.preserve {
				got.preserve = append(got.preserve, m.Name)
			}
			slices.Sort(got.preserve)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolls(t *testing.T) {
	of := func(name, revision string, replicas, exist int32) machinev1alpha1.MachineSet {
		set := setOf(replicas)
		set.Name, set.UID, set.Status.Replicas = name, types.UID(name), exist
		set.Annotations = map[string]string{RevisionAnnotation: revision}
		set.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", UID: "d", Controller: new(true)}}
		return *set
	}
	other := of("other", "9", 3, 3)
	other.OwnerReferences[0].UID = "e"
	for name, tc := range map[string]struct {
		others []machinev1alpha1.MachineSet
		want   bool
	}{
		"alone":                              {nil, false},
		"an empty older one":                 {[]machinev1alpha1.MachineSet{of("b", "1", 0, 0)}, false},
		"one of another deployment":          {[]machinev1alpha1.MachineSet{other}, false},
		"an older one that has machines":     {[]machinev1alpha1.MachineSet{of("b", "1", 0, 1)}, true},
		"an older one that shall have some":  {[]machinev1alpha1.MachineSet{of("b", "1", 1, 0)}, true},
		"a newer one that has none at first": {[]machinev1alpha1.MachineSet{of("b", "3", 0, 0)}, true},
	} {
		set := of("a", "2", 2, 2)
		if got := rolls(&set, append(tc.others, set)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestClaim(t *testing.T) {
	set := setOf(1)
	owned := func(uid string) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: "s", Controller: new(true)}}
			if uid != "s" {
				m.OwnerReferences[0].UID = "other"
			}
		}
	}
	unlabelled := func(m *machinev1alpha1.Machine) { m.Labels = nil }
	machines := []machinev1alpha1.Machine{
		*machine("owned", "", owned("s")), *machine("others", "", owned("x")), *machine("orphan", ""), *machine("dying orphan", "", deleting),
		*machine("stray", "", owned("s"), unlabelled), *machine("dying stray", "", owned("s"), unlabelled, deleting), *machine("foreign", "", unlabelled),
	}
	got := claim(set, labels.SelectorFromSet(labels.Set{"pool": "a"}), machines)
	names := func(list []*machinev1alpha1.Machine) (out []string) {
		for _, m := range list {
			out = append(out, m.Name)
		}
		return out
	}
	want := map[string][]string{"owned": {"owned", "dying stray"}, "adopt": {"orphan"}, "release": {"stray"}}
	if diff := cmp.Diff(want, map[string][]string{"owned": names(got.owned), "adopt": names(got.adopt), "release": names(got.release)}); diff != "" {
		t.Errorf("claim() (-want +got):\n%s", diff)
	}
}

func TestFreeze(t *testing.T) {
	frozen := func(reason string, annotations map[string]string) *machinev1alpha1.MachineSet {
		set := setOf(3)
		set.Labels, set.Annotations = map[string]string{machinev1alpha1.FreezeLabel: machinev1alpha1.LabelValueTrue}, annotations
		if reason != "" {
			set.Status.Conditions = []machinev1alpha1.MachineSetCondition{{Type: machinev1alpha1.MachineSetFrozen, Reason: reason}}
		}
		return set
	}
	unfreeze := map[string]string{machinev1alpha1.UnfreezeAnnotation: "True"}
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines int
		want     string
	}{
		"a small surplus":                          {setOf(3), 5, ""},
		"a larger surplus freezes it":              {setOf(3), 6, reasonOvershoots},
		"it stays frozen with a surplus":           {frozen(reasonOvershoots, nil), 5, reasonOvershoots},
		"it is unfrozen with a small surplus":      {frozen(reasonOvershoots, nil), 4, ""},
		"it is unfrozen with the annotation":       {frozen(reasonOvershoots, unfreeze), 9, ""},
		"one that a user froze stays frozen":       {frozen("", nil), 3, ReasonLabel},
		"also after the condition was written":     {frozen(ReasonLabel, nil), 3, ReasonLabel},
		"whatever its machines":                    {frozen(ReasonLabel, nil), 9, ReasonLabel},
		"a user's freeze ends with the annotation": {frozen(ReasonLabel, unfreeze), 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := freeze(tc.set, tc.machines, 2, 1); got.reason != tc.want || (got.message == "") != (tc.want == "") {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	set := setOf(4)
	set.Spec.MinReadySeconds = 500 // as extensions set it, which must not delay a rolling update
	lost := machine("c", machinev1alpha1.MachineFailed)
	lost.Status.LastOperation = machinev1alpha1.LastOperation{State: machinev1alpha1.MachineStateFailed, ErrorCode: "Internal"}
	got := status(set, []*machinev1alpha1.Machine{
		machine("a", machinev1alpha1.MachineRunning), machine("b", machinev1alpha1.MachineAvailable), lost, machine("d", machinev1alpha1.MachineRunning, deleting),
		machine("e", machinev1alpha1.MachinePending),
	}, freezing{reasonOvershoots, "too many"}, errors.New("no"), false, now)
	want := machinev1alpha1.MachineSetStatus{
		ObservedGeneration: 2, Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 2,
		FailedMachines: []machinev1alpha1.MachineSummary{{Name: "c", ProviderID: "fake:///c", OwnerRef: "s", LastOperation: lost.Status.LastOperation}},
		Conditions: []machinev1alpha1.MachineSetCondition{
			{Type: machinev1alpha1.MachineSetReplicaFailure, Status: "True", Reason: "MachinesNotChanged", Message: "no", LastTransitionTime: metav1.NewTime(now)},
			{Type: machinev1alpha1.MachineSetFrozen, Status: "True", Reason: "OverShootingReplicaCount", Message: "too many", LastTransitionTime: metav1.NewTime(now)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status() (-want +got):\n%s", diff)
	}
	// Those that are kept count, so that they are not replaced, but while machines are.
	set.Spec.AutoPreserveFailedMachineMax = new(int32(1))
	kept := []*machinev1alpha1.Machine{lost, machine("f", machinev1alpha1.MachineFailed), machine("g", machinev1alpha1.MachineRunning)}
	metav1.SetMetaDataAnnotation(&kept[0].ObjectMeta, machinev1alpha1.PreserveMachine, machinev1alpha1.PreserveAuto)
	metav1.SetMetaDataAnnotation(&kept[1].ObjectMeta, machinev1alpha1.PreserveMachine, machinev1alpha1.PreserveNow)
	if got := status(set, kept, freezing{}, nil, false, now); got.Replicas != 3 || got.AvailableReplicas != 1 || got.PreservedFailedReplicas != 2 ||
		*got.AutoPreserveFailedMachineCount != 1 || len(got.FailedMachines) != 1 {
		t.Errorf("with kept ones: %+v", got)
	}
	if got := status(set, kept, freezing{}, nil, true, now); got.Replicas != 1 || got.PreservedFailedReplicas != 0 || *got.AutoPreserveFailedMachineCount != 0 {
		t.Errorf("with kept ones while machines are replaced: %+v", got)
	}
	// The condition is removed when it is not True any more.
	set.Status = got
	if got := status(set, nil, freezing{}, nil, false, now); len(got.Conditions) > 0 {
		t.Errorf("conditions: %+v", got.Conditions)
	}
}
