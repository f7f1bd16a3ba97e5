package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func claimWith(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "etcd-0", UID: uid}}
}

// boundOn is a volume on a node, of the claim with UID 1.
func boundOn(node string) *corev1.PersistentVolume {
	volume := volumeOn(node, "/volumes/pvc-1")
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shoot", Name: "etcd-0", UID: "1"}
	return volume
}

// cluster has objects, and refuses deletions of objects with another UID, as an API server does. It reports deletions of claims, and how often a node was
// read.
func cluster(objects ...runtime.Object) (client *fake.Clientset, deleted, reads chan string) {
	client = fake.NewClientset(objects...)
	deleted, reads = make(chan string, 10), make(chan string, 10)
	client.PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		reads <- action.(clienttesting.GetAction).GetName()
		return false, nil, nil
	})
	client.PrependReactor("delete", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion := action.(clienttesting.DeleteActionImpl)
		object, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.Name)
		if err != nil {
			return true, nil, err
		}
		if claim := object.(*corev1.PersistentVolumeClaim); claim.UID != *deletion.DeleteOptions.Preconditions.UID {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), deletion.Name, nil)
		}
		deleted <- deletion.Name
		return false, nil, nil
	})
	return client, deleted, reads
}

// start runs until the test ends, and fails it if it does not end then.
func start(t *testing.T, client *fake.Clientset, grace time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- newLost(client, grace).run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// receive waits for a value, and fails the test if there is none.
func receive(t *testing.T, values <-chan string) {
	t.Helper()
	select {
	case <-values:
	case <-time.After(30 * time.Second):
		t.Fatal("there was none within 30s")
	}
}

// A pod whose volume was on a node that is gone gets another volume, whether the node was deleted before or afterwards. If the node was cordoned, it need not wait.
func TestClaimsOfLostVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		cordoned bool
		grace    time.Duration
	}{
		"the node was cordoned": {cordoned: true, grace: time.Hour}, "the node is gone for long enough": {grace: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeNamed("b")
			node.Spec.Unschedulable = tc.cordoned
			client, deleted, reads := cluster(nodeNamed("a"), node, boundOn("b"), claimWith("1"))
			start(t, client, tc.grace)
			receive(t, reads)
			if len(deleted) > 0 {
				t.Fatal("the claim was deleted while the node exists")
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			receive(t, deleted)
		})
	}
	t.Run("the node was deleted before", func(t *testing.T) {
		client, deleted, _ := cluster(nodeNamed("a"), boundOn("b"), claimWith("1"))
		start(t, client, 50*time.Millisecond)
		receive(t, deleted)
	})
}

// A node that was deleted by mistake has its data still when its kubelet registers it again.
func TestClaimsStayForAWhile(t *testing.T) {
	client, deleted, _ := cluster(nodeNamed("a"), boundOn("b"), claimWith("1"))
	l, now := newLost(client, 5*time.Minute), time.Now()
	l.now = func() time.Time { return now }
	if err := l.factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(boundOn("b")); err != nil {
		t.Fatal(err)
	}
	sync := func(after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if err := l.sync(t.Context(), "pvc-1"); err != nil || len(deleted) != want {
			t.Fatalf("%d claims were deleted, want %d, and the error is %v", len(deleted), want, err)
		}
	}
	sync(0, 0)
	sync(4*time.Minute, 0)
	l.nodeAdded(nodeNamed("b")) // and it is deleted again: the time begins again
	sync(4*time.Minute, 0)
	sync(4*time.Minute, 0)
	sync(time.Minute, 1)
}

// What was known about a former node of the name does not count, also if the events of its return were missed.
func TestNodesThatReturned(t *testing.T) {
	client, deleted, _ := cluster(boundOn("b"), claimWith("1"))
	l := newLost(client, 5*time.Minute)
	if err := l.factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(boundOn("b")); err != nil {
		t.Fatal(err)
	}
	sync := func() {
		t.Helper()
		if err := l.sync(t.Context(), "pvc-1"); err != nil || len(deleted) > 0 {
			t.Fatalf("%d claims were deleted, and the error is %v", len(deleted), err)
		}
	}
	cordoned, nodes := nodeNamed("b"), client.CoreV1().Nodes()
	cordoned.Spec.Unschedulable = true
	l.nodeDeleted(cordoned)
	if _, err := nodes.Create(t.Context(), nodeNamed("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sync()
	if err := nodes.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sync()
	l.nodeDeleted(cordoned)
	l.nodeDeleted(nodeNamed("b"))
	sync()
}

// The claims of all other volumes stay.
func TestOtherClaimsStay(t *testing.T) {
	foreign := boundOn("b")
	foreign.Annotations = nil
	unbound := boundOn("b")
	unbound.Spec.ClaimRef = nil
	for name, objects := range map[string][]runtime.Object{
		"another claim has the name by now": {boundOn("b"), claimWith("2")},
		"the claim is deleted":              {boundOn("b")},
		"the node exists":                   {boundOn("a"), claimWith("1")},
		"a volume of another provisioner":   {foreign, claimWith("1")},
		"a volume without a claim":          {unbound, claimWith("1")},
		"no volume":                         {claimWith("1")},
	} {
		t.Run(name, func(t *testing.T) {
			client, deleted, _ := cluster(append(objects, nodeNamed("a"))...)
			l := newLost(client, 0)
			for _, object := range objects {
				if volume, ok := object.(*corev1.PersistentVolume); ok {
					if err := l.factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(volume); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := l.sync(t.Context(), "pvc-1"); err != nil || len(deleted) > 0 {
				t.Errorf("%d claims were deleted, and the error is %v", len(deleted), err)
			}
		})
	}
}
