package infrastructure

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
)

// newInputs returns the inputs for a shoot which the garden has, and the networks of the Shoots that were written into the Cluster resource.
func newInputs(t *testing.T, clusters *stagetest.Clusters, shoot *corev1beta1.Shoot) (in Inputs, written *[]*corev1beta1.Networking) {
	t.Helper()
	in = Inputs{Run: clusters.Run(), Shoot: shoot, Result: &Result{}}
	in.Credentials = credentials.New(credentials.Values{SeedAPI: clusters.Seed, Namespace: stagetest.Namespace, Clock: clock.RealClock{}})
	stagetest.Generate(t, in.Credentials)
	if err := clusters.Garden.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	written = &[]*corev1beta1.Networking{}
	in.WriteCluster = func(_ context.Context, shoot *corev1beta1.Shoot) error {
		*written = append(*written, shoot.Spec.Networking)
		return nil
	}
	return in, written
}

func newShoot(networking *corev1beta1.Networking) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: stagetest.Name, Generation: 3}}
	shoot.Spec.Networking, shoot.Spec.Region = networking, "here"
	shoot.Status.ObservedGeneration = 3
	return shoot
}

// The networks that an infrastructure reports are in the Shoot and in the Cluster resource before what reads them, and are no change that leads
// to another reconciliation.
func TestNetworksOfTheInfrastructure(t *testing.T) {
	pods, services := "10.3.0.0/16", "10.4.0.0/16"
	asked := func(nodes *string) *corev1beta1.Networking {
		return &corev1beta1.Networking{Nodes: nodes, Pods: &pods, Services: &services}
	}
	for name, tc := range map[string]struct {
		spec       *corev1beta1.Networking
		former     *corev1beta1.NetworkingStatus
		reported   extensionsv1alpha1.InfrastructureStatus
		want       *corev1beta1.Networking
		wantStatus *corev1beta1.NetworkingStatus
		changes    bool // the spec
		userWrites bool // meanwhile
		again      bool // another run follows
	}{
		"it chooses nodes": {
			spec:     asked(nil),
			reported: extensionsv1alpha1.InfrastructureStatus{Networking: &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}, EgressCIDRs: []string{"203.0.113.7/32"}},
			want:     asked(new("10.1.0.0/16")), changes: true,
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"10.1.0.0/16"}, Pods: []string{pods}, Services: []string{services}, EgressCIDRs: []string{"203.0.113.7/32"}},
		},
		"it chooses nodes, as in older extensions": {
			spec: asked(nil), reported: extensionsv1alpha1.InfrastructureStatus{NodesCIDR: new("10.1.0.0/16")},
			want: asked(new("10.1.0.0/16")), changes: true,
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"10.1.0.0/16"}, Pods: []string{pods}, Services: []string{services}},
		},
		"it chooses other nodes": {
			spec: asked(new("10.0.0.0/16")), former: &corev1beta1.NetworkingStatus{Nodes: []string{"10.0.0.0/16"}},
			reported: extensionsv1alpha1.InfrastructureStatus{NodesCIDR: new("10.1.0.0/16")},
			want:     asked(new("10.1.0.0/16")), changes: true,
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"10.1.0.0/16"}, Pods: []string{pods}, Services: []string{services}},
		},
		"it chooses all": {
			spec: &corev1beta1.Networking{},
			reported: extensionsv1alpha1.InfrastructureStatus{Networking: &extensionsv1alpha1.InfrastructureStatusNetworking{
				Nodes: []string{"2001:db8:1::/64"}, Pods: []string{"2001:db8:2::/56", "2001:db8:3::/56"}, Services: []string{"2001:db8:4::/108"},
			}},
			want: &corev1beta1.Networking{Nodes: new("2001:db8:1::/64"), Pods: new("2001:db8:2::/56"), Services: new("2001:db8:4::/108")}, changes: true, again: true,
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"2001:db8:1::/64"}, Pods: []string{"2001:db8:2::/56", "2001:db8:3::/56"}, Services: []string{"2001:db8:4::/108"}},
		},
		"it chooses none, and the owner has changed the nodes": {
			spec: asked(new("10.8.0.0/15")), former: &corev1beta1.NetworkingStatus{Nodes: []string{"10.8.0.0/16"}, EgressCIDRs: []string{"203.0.113.7/32"}},
			want:       asked(new("10.8.0.0/15")),
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"10.8.0.0/15"}, Pods: []string{pods}, Services: []string{services}},
		},
		"the owner changes something else meanwhile": {
			spec: asked(nil), reported: extensionsv1alpha1.InfrastructureStatus{NodesCIDR: new("10.1.0.0/16")}, userWrites: true, again: true,
			want: asked(new("10.1.0.0/16")), changes: true,
			wantStatus: &corev1beta1.NetworkingStatus{Nodes: []string{"10.1.0.0/16"}, Pods: []string{pods}, Services: []string{services}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			shoot := newShoot(tc.spec)
			shoot.Status.Networking = tc.former
			in, written := newInputs(t, clusters, shoot)
			obj := in.Run.Infrastructure()
			obj.Status = tc.reported
			if err := clusters.Seed.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			current := &corev1beta1.Shoot{}
			if tc.userWrites {
				current = shoot.DeepCopy()
				current.Generation, current.Spec.Purpose = 4, new(corev1beta1.ShootPurposeTesting)
				if err := clusters.Garden.Update(t.Context(), current); err != nil {
					t.Fatal(err)
				}
			}
			// The fake of an API server does not count generations.
			in.Run.GardenCache = interceptor.NewClient(clusters.Garden, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if err := c.Patch(ctx, obj, patch, opts...); err != nil {
						return err
					}
					obj.SetGeneration(obj.GetGeneration() + 1)
					return c.Update(ctx, obj)
				},
			})
			for range 2 { // the second one changes nothing
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "infrastructure"); err != nil {
					t.Fatal(err)
				}
				if err := clusters.Garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), current); err != nil {
					t.Fatal(err)
				}
				in.Shoot = current.DeepCopy()
			}
			if diff := cmp.Diff(tc.want, current.Spec.Networking); diff != "" {
				t.Errorf("spec.networking (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantStatus, current.Status.Networking); diff != "" {
				t.Errorf("status.networking (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]*corev1beta1.Networking{tc.want}, *written); diff != "" {
				t.Errorf("networks in the Cluster resource (-want +got):\n%s", diff)
			}
			generation := int64(3)
			for _, more := range []bool{tc.changes, tc.userWrites} {
				if more {
					generation++
				}
			}
			if current.Generation != generation {
				t.Errorf("the generation is %d, want %d", current.Generation, generation)
			}
			if seen := current.Status.ObservedGeneration == generation; seen == tc.again {
				t.Errorf("generation %d is observed: %t", generation, seen)
			}
		})
	}
}

// An Infrastructure is reconciled when there is a reason: infrastructures limit how many requests they take.
func TestInfrastructureIsReconciledWhenNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Inputs)
		want   bool
	}{
		"nothing has changed": {change: func(*Inputs) {}},
		"it was requested":    {change: func(in *Inputs) { in.Requested = true }, want: true},
		"its configuration has changed": {
			change: func(in *Inputs) {
				in.Shoot.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte(`{"zones":2}`)}
			}, want: true,
		},
		"the owner asks for other nodes": {
			change: func(in *Inputs) { in.Shoot.Spec.Networking.Nodes = new("10.0.0.0/16") }, want: true,
		},
		"the owner adds an IP family": {
			change: func(in *Inputs) {
				in.Shoot.Spec.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}
			}, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in, _ := newInputs(t, clusters, newShoot(&corev1beta1.Networking{Nodes: new("10.1.0.0/16")}))
			obj := in.Run.Infrastructure()
			obj.UID, obj.Status.NodesCIDR = "1", new("10.1.0.0/16") // the fake of an API server sets no UID
			if err := clusters.Seed.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			reconcile := func() {
				t.Helper()
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), "infrastructure"); err != nil {
					t.Fatal(err)
				}
				if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			before := obj.Annotations[constants.GardenerTimestamp]
			if before == "" {
				t.Fatal("a new Infrastructure is not reconciled")
			}
			tc.change(&in)
			reconcile()
			if reconciled := obj.Annotations[constants.GardenerTimestamp] != before; reconciled != tc.want {
				t.Errorf("it is reconciled: %t, want %t", reconciled, tc.want)
			}
		})
	}
}

// The credentials of the test have no SSH key, like those of a cluster whose nodes must not have one.
func TestInfrastructureLosesTheSSHKey(t *testing.T) {
	clusters := stagetest.New(t)
	in, _ := newInputs(t, clusters, newShoot(&corev1beta1.Networking{Nodes: new("10.1.0.0/16")}))
	obj := in.Run.Infrastructure()
	obj.UID, obj.Spec.SSHPublicKey, obj.Status.NodesCIDR = "1", []byte("key"), new("10.1.0.0/16")
	if err := clusters.Seed.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "infrastructure"); err != nil {
		t.Fatal(err)
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	if obj.Spec.SSHPublicKey != nil {
		t.Errorf("the key is %q", obj.Spec.SSHPublicKey)
	}
}

// What deletes load balancers and volumes has the current credentials, and runs, before a cluster is cleaned up. A ControlPlane that was never created
// is not created.
func TestExistingControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		made, deleted, want bool
	}{
		"it exists":            {made: true, want: true},
		"it was never created": {},
		"it is deleted, too":   {made: true, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run()}
			obj := in.Run.ControlPlane()
			obj.UID, obj.Finalizers = "1", []string{"extensions.gardener.cloud/x"}
			obj.Spec.InfrastructureProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
			if tc.made {
				if err := clusters.Seed.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if tc.deleted {
				if err := clusters.Seed.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if err := stagetest.RunTask(t.Context(), t, []flow.Task{ExistingControlPlane(in)}, "control-plane"); err != nil {
				t.Fatal(err)
			}
			got := &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); apierrors.IsNotFound(err) != !tc.made {
				t.Fatalf("ControlPlane exists: %t, want %t (%v)", err == nil, tc.made, err)
			}
			if reconciled := got.Annotations[constants.GardenerTimestamp] != ""; reconciled != tc.want {
				t.Errorf("it is reconciled: %t, want %t", reconciled, tc.want)
			}
			if tc.made && got.Spec.InfrastructureProviderStatus == nil {
				t.Error("it loses the status of the infrastructure")
			}
		})
	}
}
