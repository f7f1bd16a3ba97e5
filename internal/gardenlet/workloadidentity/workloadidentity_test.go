package workloadidentity

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestSecretsAreFilled(t *testing.T) {
	const namespaceKey, nameKey = "workloadidentity.security.gardener.cloud/namespace", "workloadidentity.security.gardener.cloud/name"
	const contextKey, renewKey = "workloadidentity.security.gardener.cloud/context-object", "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	for name, tc := range map[string]struct {
		label       string
		annotations map[string]string
		token, want string
		requests    int
		context     *securityv1alpha1.ContextObject
		after       time.Duration
		fails       bool
	}{
		"a new one": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w"},
			want: "new", requests: 1, after: 4 * time.Hour,
		},
		"for a shoot": {
			label:       "workload-identity-token-requestor",
			annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", contextKey: `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"a","namespace":"garden-dev","uid":"1"}`},
			want:        "new", requests: 1, after: 4 * time.Hour,
			context: &securityv1alpha1.ContextObject{Kind: "Shoot", APIVersion: "core.gardener.cloud/v1beta1", Name: "a", Namespace: new("garden-dev"), UID: "1"},
		},
		"one that is good": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T13:00:00Z"},
			token: "old", want: "old", after: time.Hour,
		},
		"one that has been good": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T11:59:59Z"},
			token: "old", want: "new", requests: 1, after: 4 * time.Hour,
		},
		"one whose token somebody has taken away": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T13:00:00Z"},
			want: "new", requests: 1, after: 4 * time.Hour,
		},
		"one of somebody else":     {label: "other"},
		"one that does not say it": {label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev"}, fails: true},
		"one that says it badly": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", contextKey: "{"}, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
			if tc.context != nil {
				namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot", Annotations: map[string]string{"shoot.gardener.cloud/uid": "1"}}}
			}
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "cloudprovider", Labels: map[string]string{"security.gardener.cloud/purpose": tc.label}, Annotations: tc.annotations},
				Data:       map[string][]byte{"config": []byte("c")},
			}
			if tc.token != "" {
				secret.Data["token"] = []byte(tc.token)
			}
			var requests []*securityv1alpha1.TokenRequest
			garden := interceptor.NewClient(gardenOf(t), interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, subResource string, identity, body client.Object, _ ...client.SubResourceCreateOption) error {
					if got := subResource + " of " + client.ObjectKeyFromObject(identity).String(); got != "token of garden-dev/w" {
						t.Errorf("somebody asked for %s", got)
					}
					request := body.(*securityv1alpha1.TokenRequest) //nolint:forcetypeassert // it panics in a test
					request.Status = securityv1alpha1.TokenRequestStatus{Token: "new", ExpirationTimestamp: metav1.NewTime(now.Add(5 * time.Hour))}
					requests = append(requests, request)
					return nil
				},
			})
			seed := fake.NewClientBuilder().WithObjects(secret, namespace).Build()
			r := &reconciler{early: func() float64 { return 0 }, Values: Values{
				SeedName: "local", GardenClient: garden, SeedClient: seed, TokenExpiration: 6 * time.Hour, Clock: clocktesting.NewFakePassiveClock(now),
			}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if result.RequeueAfter != tc.after || len(requests) != tc.requests {
				t.Errorf("%d requests, and the next look after %s", len(requests), result.RequeueAfter)
			}
			for _, request := range requests {
				if diff := gocmp.Diff(securityv1alpha1.TokenRequestSpec{ContextObject: tc.context, ExpirationSeconds: new(int64(21600))}, request.Spec); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
			}
			got := &corev1.Secret{}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(secret), got); err != nil {
				t.Fatal(err)
			}
			if string(got.Data["token"]) != tc.want || string(got.Data["config"]) != "c" {
				t.Errorf("the Secret has token %q and config %q", got.Data["token"], got.Data["config"])
			}
		})
	}
}

// gardenOf is a garden with a Shoot and a Seed that refer to WorkloadIdentities, and what is changed in it.
func gardenOf(t *testing.T, change ...func(*corev1beta1.Shoot)) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, securityv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	resource := corev1beta1.NamedResourceReference{Name: "r"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name = "WorkloadIdentity", "w"
	identity := func(namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Namespace: namespace, Name: name}
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "a", UID: "1"}}
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{resource}
	shoot.Spec.CredentialsBindingName = new("b")
	shoot.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
		{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{Kind: "WorkloadIdentity", Name: "dns"}},
		{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{Kind: "Secret", Name: "secret"}},
	}}
	for _, change := range change {
		change(shoot)
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "2"}}
	seed.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{CredentialsRef: identity("garden", "internal")}
	seed.Spec.Resources = []corev1beta1.NamedResourceReference{resource}
	seed.Spec.Backup = &corev1beta1.Backup{CredentialsRef: new(identity("garden-dev", "w"))}
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "2", UID: "5"}}
	bucket.Spec.SeedName, bucket.Spec.CredentialsRef = new("local"), new(identity("garden", "backup"))
	entry := func(name string, uid types.UID, seed string) *corev1beta1.BackupEntry {
		e := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name, UID: uid}}
		e.Spec.SeedName, e.Spec.BucketName = &seed, "2"
		return e
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, seed, bucket, entry("shoot--dev--a--1", "6", "local"), entry("other--3", "7", "local"), entry("elsewhere--4", "8", "else"), &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "b"}, CredentialsRef: identity("garden-shared", "bound"),
	}).Build()
}

func TestAuthorize(t *testing.T) {
	const ofShoot = true
	about := func(change func(*securityv1alpha1.ContextObject)) *securityv1alpha1.ContextObject {
		o := &securityv1alpha1.ContextObject{Kind: "Shoot", APIVersion: "core.gardener.cloud/v1beta1", Namespace: new("garden-dev"), Name: "a", UID: "1"}
		if change != nil {
			change(o)
		}
		return o
	}
	backup := client.ObjectKey{Namespace: "garden", Name: "backup"}
	forBackup := func(kind, name string, uid types.UID) *securityv1alpha1.ContextObject {
		o := &securityv1alpha1.ContextObject{Kind: kind, APIVersion: "core.gardener.cloud/v1beta1", Name: name, UID: uid}
		if kind == "BackupEntry" {
			o.Namespace = new("garden-dev")
		}
		return o
	}
	for name, tc := range map[string]struct {
		ofShoot   bool
		namespace string // "garden" if it is empty and not of a Shoot
		order     order
		change    func(*corev1beta1.Shoot)
		refused   bool
	}{
		"named in spec.resources":     {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(nil)}},
		"bound, of another namespace": {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-shared", Name: "bound"}, about(nil)}},
		"for the domain of the shoot": {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "dns"}, about(nil)}},
		"for the domain of the seed":  {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden", Name: "internal"}, about(nil)}},
		"of another kind, whose name is the same": {
			ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "secret"}, about(nil)}, refused: true,
		},
		"of another project": {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-victim", Name: "w"}, about(nil)}, refused: true},
		"of the seed itself": {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden", Name: "w"}, about(nil)}, refused: true},
		"without a context":  {ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, nil}, refused: true},
		"in the name of another shoot": {ofShoot: ofShoot, order: order{
			client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(func(o *securityv1alpha1.ContextObject) { o.UID = "3" }),
		}, refused: true},
		"of another kind of context": {ofShoot: ofShoot, order: order{
			client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(func(o *securityv1alpha1.ContextObject) { o.Kind = "Project" }),
		}, refused: true},
		"of a Shoot that is not there": {ofShoot: ofShoot, order: order{
			client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(func(o *securityv1alpha1.ContextObject) { o.Name = "b" }),
		}, refused: true},
		"of a Shoot that was created again": {
			ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(nil)}, refused: true,
			change: func(s *corev1beta1.Shoot) { s.UID = "4" },
		},
		"of a Shoot in another namespace of the seed": {
			ofShoot: ofShoot, order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(nil)}, refused: true,
			change: func(s *corev1beta1.Shoot) { s.Status.TechnicalID = "shoot--dev--other" },
		},
		"named in spec.resources of the seed": {order: order{client.ObjectKey{Namespace: "garden", Name: "w"}, nil}},
		"for the seed": {order: order{
			client.ObjectKey{Namespace: "garden", Name: "w"},
			&securityv1alpha1.ContextObject{Kind: "Seed", APIVersion: "core.gardener.cloud/v1beta1", Name: "local", UID: "2"},
		}},
		"for another seed": {order: order{
			client.ObjectKey{Namespace: "garden", Name: "w"},
			&securityv1alpha1.ContextObject{Kind: "Seed", APIVersion: "core.gardener.cloud/v1beta1", Name: "local", UID: "3"},
		}, refused: true},
		"for a shoot outside its namespace":  {order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, about(nil)}, refused: true},
		"what the seed does not refer to":    {order: order{client.ObjectKey{Namespace: "garden-shared", Name: "bound"}, nil}, refused: true},
		"for the bucket with backups":        {order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, nil}},
		"for the bucket, by its object":      {order: order{backup, forBackup("BackupBucket", "2", "5")}},
		"for the bucket, in a control plane": {ofShoot: ofShoot, order: order{backup, forBackup("BackupBucket", "2", "5")}, refused: true},
		"for another bucket of the name":     {order: order{backup, forBackup("BackupBucket", "2", "6")}, refused: true},
		"for a bucket with other credentials": {
			order: order{client.ObjectKey{Namespace: "garden-dev", Name: "w"}, forBackup("BackupBucket", "2", "5")}, refused: true,
		},
		"for the backups of a shoot":               {order: order{backup, forBackup("BackupEntry", "shoot--dev--a--1", "6")}},
		"for its own backups, in a control plane":  {ofShoot: ofShoot, order: order{backup, forBackup("BackupEntry", "shoot--dev--a--1", "6")}},
		"for other backups, in a control plane":    {ofShoot: ofShoot, order: order{backup, forBackup("BackupEntry", "other--3", "7")}, refused: true},
		"for backups that are on another seed":     {order: order{backup, forBackup("BackupEntry", "elsewhere--4", "8")}, refused: true},
		"for backups that do not exist":            {order: order{backup, forBackup("BackupEntry", "gone", "9")}, refused: true},
		"for backups with credentials of the Seed": {order: order{client.ObjectKey{Namespace: "garden", Name: "internal"}, forBackup("BackupEntry", "other--3", "7")}, refused: true},
		"for a domain, by a part of the seed":      {order: order{client.ObjectKey{Namespace: "garden", Name: "internal"}, nil}},
		"for the seed, in another namespace":       {namespace: "extension-evil", order: order{client.ObjectKey{Namespace: "garden", Name: "w"}, nil}, refused: true},
		"for the bucket, in another namespace":     {namespace: "extension-evil", order: order{backup, forBackup("BackupBucket", "2", "5")}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(tc.namespace, "garden")}}
			if tc.ofShoot {
				namespace.Name = "shoot--dev--a"
				namespace.Annotations = map[string]string{"shoot.gardener.cloud/uid": "1"}
			}
			if tc.change == nil {
				tc.change = func(*corev1beta1.Shoot) {}
			}
			r := &reconciler{Values: Values{
				SeedName: "local", GardenClient: gardenOf(t, tc.change), SeedClient: fake.NewClientBuilder().WithObjects(namespace).Build(),
			}}
			if err := r.authorize(t.Context(), namespace.Name, tc.order); errors.Is(err, errRefused) != tc.refused || err != nil && !tc.refused {
				t.Errorf("authorize() returns %v, want a refusal: %t", err, tc.refused)
			}
		})
	}
}
