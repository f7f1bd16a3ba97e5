package clusterautoscaler

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	fakeclient "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// roundTripper is an API server.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Evictions have no response, as a webhook hangs: a scan waits for one of them only, and draining fails after the time for evictions.
func TestEvictionsWithoutResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		shoot, err := kubernetes.NewForConfig(&rest.Config{Host: "https://shoot.example.com", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			requests++
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(time.Hour):
				return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody}, nil
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		s := &Scaler{shoot: shoot, metrics: newMetrics(), events: record.NewFakeRecorder(10), options: Options{maxPodEvictionTime: 2 * time.Minute, maxGracefulTermination: 600}}
		node := plan.Occupied{Node: healthyNode("n")}
		for _, name := range []string{"p", "q", "r"} {
			node.Pods = append(node.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}})
		}
		began := time.Now()
		d := &drain{since: began, evicted: map[types.UID]time.Time{}}
		left, err := s.evict(t.Context(), d, node, time.Now())
		if took := time.Since(began); err != nil || left != 3 || requests != 1 || took > 30*time.Second {
			t.Errorf("%d pods left after %d requests in %s: %v", left, requests, took, err)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // time is not real here
		if _, err := s.evict(t.Context(), d, node, time.Now()); err == nil {
			t.Error("draining has not failed")
		}
	})
}

// The successor of an evicted pod is on the node that is drained, as it tolerates every taint: it is not evicted, and the node goes. Without the toleration
// the scheduler had not seen the taint yet, and it is evicted, too.
func TestPodThatReturns(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		created     time.Time
		tolerations []corev1.Toleration
		want        int
	}{
		"created before the drain":                     {start.Add(-time.Hour), all, 1},
		"created since then":                           {start.Add(time.Second), all, 0},
		"created since then, and does not tolerate it": {start.Add(time.Second), nil, 1},
		"created since then, and tolerates another":    {start.Add(time.Second), []corev1.Toleration{{Key: "other", Operator: corev1.TolerationOpExists}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p", CreationTimestamp: metav1.NewTime(tc.created)},
				Spec:       corev1.PodSpec{NodeName: "n", Tolerations: tc.tolerations},
			}
			shoot := fakeclient.NewClientset(pod)
			s := &Scaler{
				shoot: shoot, metrics: newMetrics(), events: record.NewFakeRecorder(10), options: Options{maxGracefulTermination: 600}, clock: clocktesting.NewFakeClock(start),
			}
			d := &drain{since: start, evicted: map[types.UID]time.Time{}}
			left, err := s.evict(t.Context(), d, plan.Occupied{Node: healthyNode("n"), Pods: []*corev1.Pod{pod}}, start.Add(10*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if left != tc.want || len(d.evicted) != tc.want {
				t.Errorf("%d pods left, of which %d are evicted; want %d", left, len(d.evicted), tc.want)
			}
		})
	}
}

// A pod is scheduled to an idle node while a scan decides to remove it: the node stays, and gets pods again. Pods that end with their node do not count.
func TestPodThatArrives(t *testing.T) {
	for name, tc := range map[string]struct {
		owner string
		want  int32
	}{
		"a pod":                  {"Job", 1},
		"the pod of a DaemonSet": {"DaemonSet", 0},
	} {
		t.Run(name, func(t *testing.T) {
			node, machine := idleNode("n", "a")
			group := emptyGroup("a", 1)
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(group, machineManager(), machine)...).Build()
			shoot := fakeclient.NewClientset(node)
			s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a")
			st, err := s.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			s.pods = corelisters.NewPodLister(pods)
			if err := pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{Kind: tc.owner, Name: "o", UID: "o", Controller: new(true)}},
			}, Spec: corev1.PodSpec{NodeName: "n"}}); err != nil {
				t.Fatal(err)
			}
			removal := plan.Removal{Candidate: plan.Candidate{Occupied: st.nodes["n"], Group: &st.groups[0].Group}}
			if err := s.startRemovals(t.Context(), st, []plan.Removal{removal}); err != nil {
				t.Fatal(err)
			}
			d := &machinev1alpha1.MachineDeployment{}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(group[0]), d); err != nil {
				t.Fatal(err)
			}
			if d.Spec.Replicas != tc.want || tc.want > 0 && isTainted(t, shoot, "n") {
				t.Errorf("%d replicas, want %d, and the node is tainted: %t", d.Spec.Replicas, tc.want, isTainted(t, shoot, "n"))
			}
		})
	}
}

// Evictions have slow responses, or a scan has taken long before: the time that a pod has to end begins when it is evicted.
func TestTimeToEnd(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	shoot := fakeclient.NewClientset()
	shoot.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		clock.Step(40 * time.Second)
		return true, nil, nil
	})
	s := &Scaler{shoot: shoot, metrics: newMetrics(), events: record.NewFakeRecorder(10), options: Options{maxGracefulTermination: 600}, clock: clock}
	node := plan.Occupied{Node: healthyNode("n")}
	for _, name := range []string{"p", "q"} { // they have 30 s
		node.Pods = append(node.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}})
	}
	d := &drain{since: clock.Now(), evicted: map[types.UID]time.Time{}}
	for range 2 {
		if left, err := s.evict(t.Context(), d, node, clock.Now()); left != 2 || err != nil {
			t.Errorf("%d pods left: %v", left, err)
		}
	}
	clock.Step(time.Minute)
	if _, err := s.evict(t.Context(), d, node, clock.Now()); err == nil {
		t.Error("draining has not failed, although pods did not end")
	}
}
