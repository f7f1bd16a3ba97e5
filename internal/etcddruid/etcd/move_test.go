package etcd

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The label of zones that a driver has.
const driverZone = "topology.example.com/zone"

// members are an etcd cluster of which one pod waits for a node.
type members struct {
	set     *appsv1.StatefulSet
	pods    []*corev1.Pod
	claims  []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
	leases  []coordinationv1.Lease
}

// inZone returns three members with their volumes in one zone, the last one of which waits for a node in one of three zones.
func inZone(zone string) *members {
	selector := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b", "c"}},
	}}
	m := &members{set: &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{selector},
				}}},
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
					{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule},
					{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule},
				},
			}},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: 2, UpdateRevision: "new"},
	}}
	for i := range int32(3) {
		name := memberName("etcd-main", i)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: podLabels("etcd-main")}}
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old"
		pod.Spec = *m.set.Spec.Template.Spec.DeepCopy()
		pod.Spec.NodeName, pod.Status.Phase = "a-"+strconv.Itoa(int(i)), corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-" + name, UID: types.UID(name), Labels: podLabels("etcd-main")}}
		claim.Spec.VolumeName = "volume-" + strconv.Itoa(int(i))
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, UID: "1"}}
		volume.Spec.NodeAffinity = ofDriver(zone)
		m.pods, m.claims, m.volumes = append(m.pods, pod), append(m.claims, claim), append(m.volumes, volume)
		m.leases = append(m.leases, lease(i, strconv.Itoa(int(i))+":Member", 0))
	}
	last := m.pods[2]
	last.Labels[appsv1.ControllerRevisionHashLabelKey], last.Spec.NodeName, last.Status.Phase = "new", "", corev1.PodPending
	last.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return m
}

// namesZones lets the template of the pods have other names of zones than the pods, which a webhook has changed.
func (m *members) namesZones(names ...string) {
	m.set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values = names
}

// ofDriver is the node affinity of a volume in a zone.
func ofDriver(zone string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: driverZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}

func TestMove(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*members)
		// keepsPod and keepsClaim say what is left of the member.
		keepsPod, keepsClaim bool
		moving               string
	}{
		"all volumes are in one zone": {
			change: func(*members) {},
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a)`,
		},
		"its zone is none of the control plane": {
			change: func(m *members) {
				m.pods[2].Spec.TopologySpreadConstraints = nil
				m.volumes[2].Spec.NodeAffinity = ofDriver("d")
			},
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (d)`,
		},
		"a pass has failed after the claim": {
			change: func(m *members) {
				m.claims[2].DeletionTimestamp, m.claims[2].Finalizers = new(metav1.NewTime(now)), []string{"kubernetes.io/pvc-protection"}
				m.pods[2].Status.Conditions, m.pods[2].Spec.NodeName = nil, "b-0"
			},
			keepsClaim: true,
			moving:     `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a)`,
		},
		"another is a learner": {
			change:   func(m *members) { m.leases[1] = lease(1, "1:Learner", 0) },
			keepsPod: true, keepsClaim: true,
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a); waiting until all other members are ready`,
		},
		"another does not renew its Lease": {
			change:   func(m *members) { m.leases[0] = lease(0, "0:Leader", 2*time.Minute) },
			keepsPod: true, keepsClaim: true,
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a); waiting until all other members are ready`,
		},
		"another has failed since": {
			change:   func(m *members) { m.pods[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			keepsPod: true, keepsClaim: true,
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a); waiting until all other members are ready`,
		},
		"two are missing":                        {change: func(m *members) { m.set.Status.ReadyReplicas = 1 }, keepsPod: true, keepsClaim: true},
		"the last change is not observed":        {change: func(m *members) { m.set.Generation = 3 }, keepsPod: true, keepsClaim: true},
		"a pod of the former template":           {change: func(m *members) { m.set.Status.UpdateRevision = "newer" }, keepsPod: true, keepsClaim: true},
		"a pod that starts":                      {change: func(m *members) { m.pods[2].Status.Conditions = nil }, keepsPod: true, keepsClaim: true},
		"its zone is free, so a node is missing": {change: func(m *members) { m.volumes[2].Spec.NodeAffinity = ofDriver("b") }, keepsPod: true, keepsClaim: true},
		"its node is gone":                       {change: func(m *members) { m.volumes[2].Spec.NodeAffinity = ofDriver("gone") }, keepsPod: true, keepsClaim: true},
		"its volume is usable everywhere":        {change: func(m *members) { m.volumes[2].Spec.NodeAffinity = nil }, keepsPod: true, keepsClaim: true},
		"it has no volume yet":                   {change: func(m *members) { m.claims[2].Spec.VolumeName = "" }, keepsPod: true, keepsClaim: true},
		"pods need not be in zones":              {change: func(m *members) { m.set.Spec.Template.Spec.Affinity = nil }, keepsPod: true, keepsClaim: true},
		"a webhook lets the pod run anywhere":    {change: func(m *members) { m.pods[2].Spec.Affinity = nil }, keepsPod: true, keepsClaim: true},
		"the Seed names zones as the infrastructure does, nodes with their region": {
			change: func(m *members) { m.namesZones("1", "2", "3") },
			moving: `Member "etcd-main-2" moves to another zone: its pod cannot run in that of its volume (a)`,
		},
		"the Seed names zones in another way, and a node is missing": {
			change: func(m *members) {
				m.namesZones("1", "2", "3")
				m.volumes[2].Spec.NodeAffinity = ofDriver("b")
			},
			keepsPod: true, keepsClaim: true,
		},
		"pods need not be spread": {
			change:   func(m *members) { m.pods[2].Spec.TopologySpreadConstraints = nil },
			keepsPod: true, keepsClaim: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := inZone("a")
			tc.change(m)
			var objects []client.Object
			for i := range m.pods {
				objects = append(objects, m.pods[i], m.claims[i], m.volumes[i])
			}
			for _, zone := range []string{"a", "b", "c", "d"} {
				objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone + "-0", Labels: map[string]string{corev1.LabelTopologyZone: zone, driverZone: zone}}})
			}
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
			recorder := events.NewFakeRecorder(2)
			r := &reconciler{client: c, api: c, recorder: recorder, clock: clocktesting.NewFakePassiveClock(now), thresholds: limits}
			etcd := mainEtcd()
			etcd.Namespace = "ns"
			s := &scope{etcd: etcd, statefulSet: m.set, leases: m.leases}
			if err := r.move(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.moving, s.moving); diff != "" {
				t.Errorf("moving (-want +got):\n%s", diff)
			}
			left := map[string]bool{}
			for _, object := range []client.Object{m.pods[2], m.claims[2]} {
				err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
				left[object.GetName()] = client.IgnoreNotFound(err) == nil && err == nil
			}
			if diff := cmp.Diff(map[string]bool{"etcd-main-2": tc.keepsPod, "data-etcd-main-2": tc.keepsClaim}, left); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
			if reported := len(recorder.Events) == 1; reported == tc.keepsPod {
				t.Errorf("an event is reported: %t", reported)
			}
		})
	}
}

// Of members in three zones, the volumes of those in zones that are left have to move: the pods are replaced one by one.
func TestExcludes(t *testing.T) {
	for name, tc := range map[string]struct {
		placement placement
		volume    []string
		others    [][]string
		want      bool
	}{
		"the first of three":            {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a"}, others: [][]string{{"a"}, {"a"}}, want: true},
		"the second of three":           {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a"}, others: [][]string{{"a"}, {"b"}}, want: true},
		"the last of three stays":       {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a"}, others: [][]string{{"c"}, {"b"}}},
		"others are not known":          {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a"}, others: [][]string{nil, {"b"}}},
		"others may be elsewhere":       {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a"}, others: [][]string{{"a", "b"}, {"c"}}},
		"a volume of two zones":         {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a", "b"}, others: [][]string{{"a"}, {"c"}}},
		"a volume of two taken zones":   {placement: placement{zones: []string{"a", "b", "c"}, perZone: 1}, volume: []string{"a", "b"}, others: [][]string{{"a"}, {"b"}}, want: true},
		"two zones for three":           {placement: placement{zones: []string{"a", "b"}, perZone: 2}, volume: []string{"a"}, others: [][]string{{"a"}, {"b"}}},
		"another zone":                  {placement: placement{zones: []string{"a"}}, volume: []string{"b"}, others: [][]string{{"a"}, {"a"}}, want: true},
		"one zone":                      {placement: placement{zones: []string{"a"}}, volume: []string{"a"}, others: [][]string{{"a"}, {"a"}}},
		"an unknown zone is not judged": {placement: placement{zones: []string{"a"}}, others: [][]string{{"a"}, {"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.placement.excludes(tc.volume, tc.others); got != tc.want {
				t.Errorf("excludes() = %t", got)
			}
		})
	}
}

func TestPlacementOf(t *testing.T) {
	terms := func(terms ...map[string]string) *corev1.Affinity {
		selector := &corev1.NodeSelector{}
		for _, term := range terms {
			out := corev1.NodeSelectorTerm{}
			for _, key := range slices.Sorted(maps.Keys(term)) {
				out.MatchExpressions = append(out.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{term[key]}})
			}
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, out)
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
	const zone = corev1.LabelTopologyZone
	for name, tc := range map[string]struct {
		affinity   *corev1.Affinity
		constraint corev1.TopologySpreadConstraint
		want       placement
	}{
		"anywhere":                    {constraint: corev1.TopologySpreadConstraint{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}},
		"spread over two zones":       {terms(map[string]string{zone: "b"}, map[string]string{zone: "a"}), corev1.TopologySpreadConstraint{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}, placement{[]string{"a", "b"}, 2}},
		"spread with a larger skew":   {terms(map[string]string{zone: "b"}, map[string]string{zone: "a"}), corev1.TopologySpreadConstraint{TopologyKey: zone, MaxSkew: 2, WhenUnsatisfiable: corev1.DoNotSchedule}, placement{[]string{"a", "b"}, 3}},
		"spread if possible":          {terms(map[string]string{zone: "a"}), corev1.TopologySpreadConstraint{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}, placement{[]string{"a"}, 0}},
		"spread over hosts":           {terms(map[string]string{zone: "a", "pool": "x"}), corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}, placement{[]string{"a"}, 0}},
		"one term is for other zones": {affinity: terms(map[string]string{zone: "a"}, map[string]string{"pool": "x"})},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.PodSpec{Affinity: tc.affinity, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{tc.constraint}}
			if diff := cmp.Diff(tc.want, placementOf(new(int32(3)), pod), cmp.AllowUnexported(placement{})); diff != "" {
				t.Errorf("placementOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// Without all members, a rollout that spreads them would leave two without a zone.
func TestMaySpread(t *testing.T) {
	spread, before := inZone("a").set, inZone("a").set
	before.Spec.Template.Spec.TopologySpreadConstraints = nil
	for name, tc := range map[string]struct {
		current *appsv1.StatefulSet
		ready   int32
		refused bool
	}{
		"new":                                 {},
		"all are ready":                       {current: before, ready: 3},
		"one is missing":                      {current: before, ready: 2, refused: true},
		"one is missing, and they are spread": {current: spread, ready: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.current != nil {
				tc.current = tc.current.DeepCopy()
				tc.current.Status.ReadyReplicas = tc.ready
			}
			if err := maySpread(tc.current, []client.Object{&corev1.Service{}, spread}); (err != nil) != tc.refused {
				t.Errorf("maySpread() = %v", err)
			}
		})
	}
}

func TestHasRoom(t *testing.T) {
	p := placement{zones: []string{"a", "b", "c"}, perZone: 1}
	for name, tc := range map[string]struct {
		nodes  []string
		others [][]string
		want   bool
	}{
		"another zone has a node":  {[]string{"a", "b"}, [][]string{{"a"}, {"a"}}, true},
		"no other zone has a node": {[]string{"a", "a"}, [][]string{{"a"}, {"a"}}, false},
		"the other zones are full": {[]string{"a", "b"}, [][]string{{"a"}, {"b"}}, false},
		"a zone that may not be":   {[]string{"a", "d"}, [][]string{{"a"}, {"a"}}, false},
	} {
		if got := p.hasRoom(tc.nodes, tc.others); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
