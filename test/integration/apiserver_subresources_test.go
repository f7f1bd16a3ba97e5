package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// as returns a client of another user.
func as(t *testing.T, e *env.Env, name string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allow lets a user do something to resources of the garden in a namespace.
func allow(t *testing.T, e *env.Env, user, group string, verbs []string, resources ...string) {
	t.Helper()
	name := user + "-" + strings.ReplaceAll(resources[0], "/", "-")
	create(t, e, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: verbs}},
	})
	create(t, e, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// eventually does what may be refused until the caches of the servers have what was just written.
func eventually(ctx context.Context, t *testing.T, try func() error, done func(error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := try()
		if done(err) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func testKubeconfigs(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	shoot := create(t, e, newShoot("reached"))
	request := func(c client.Client, seconds int64) (*authenticationv1alpha1.AdminKubeconfigRequest, error) {
		request := &authenticationv1alpha1.AdminKubeconfigRequest{
			Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(seconds)},
		}
		return request, c.SubResource("adminkubeconfig").Create(ctx, shoot, request)
	}
	refused := func(missing string) {
		t.Helper()
		if _, err := request(c, 3600); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), missing) {
			t.Errorf("request is answered with %v, want an error that names %s", err, missing)
		}
	}
	refused("status.advertisedAddresses")
	shoot.Status.AdvertisedAddresses = []corev1beta1.ShootAdvertisedAddress{
		{Name: "external", URL: "https://api.reached.example.com"},
		{Name: "internal", URL: "https://api.reached.internal.example.com"},
		{Name: "service-account-issuer", URL: "https://issuer.example.com"},
		{Name: "wildcard-tls-seed-bound", URL: "https://api-reached.ingress.example.com"},
		{Name: "dashboards", URL: "https://dashboards.example.com", Application: new("plutono")},
	}
	if err := c.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	refused("ConfigMap reached.ca-cluster")
	create(t, e, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "reached.ca-cluster"}, Data: map[string]string{"ca.crt": "bundle"}})
	refused("InternalSecret reached.ca-client")
	caPEM, keyPEM := newCA(t)
	create(t, e, &corev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "reached.ca-client"}, Data: map[string][]byte{"ca.crt": caPEM, "ca.key": keyPEM},
	})

	for name, tc := range map[string]struct {
		client   client.Client
		seconds  int64
		user     string
		group    string
		lifetime time.Duration
	}{
		"an administrator of the landscape": {c, 600, "admin", "gardener.cloud:system:admins", 10 * time.Minute},
		"longer than allowed":               {c, 1 << 30, "admin", "gardener.cloud:system:admins", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := request(tc.client, tc.seconds)
			if err != nil {
				t.Fatal(err)
			}
			checkCertificate(t, answer.Status.Kubeconfig, caPEM, pkix.Name{CommonName: "gardener.cloud:user:" + tc.user, Organization: []string{tc.group}}, tc.lifetime)
			if left := time.Until(answer.Status.ExpirationTimestamp.Time); left > tc.lifetime || left < tc.lifetime-time.Minute {
				t.Errorf("expires in %s, want %s", left, tc.lifetime)
			}
			if answer.Name != shoot.Name || len(answer.ManagedFields) != 0 {
				t.Errorf("metadata of the answer: %+v", answer.ObjectMeta)
			}
		})
	}

	config, err := func() (*rest.Config, error) {
		answer, err := request(c, 600)
		if err != nil {
			return nil, err
		}
		loaded, err := clientcmd.Load(answer.Status.Kubeconfig)
		if err != nil {
			return nil, err
		}
		var contexts []string
		for name := range loaded.Contexts {
			contexts = append(contexts, name+" "+loaded.Clusters[loaded.Contexts[name].Cluster].Server)
		}
		want := []string{"garden-dev--reached-external https://api.reached.example.com", "garden-dev--reached-internal https://api.reached.internal.example.com"}
		if diff := cmp.Diff(want, contexts, sortedStrings); diff != "" {
			t.Errorf("contexts (-want +got):\n%s", diff)
		}
		return clientcmd.RESTConfigFromKubeConfig(answer.Status.Kubeconfig)
	}()
	if err != nil || config.Host != "https://api.reached.example.com" || string(config.CAData) != "bundle" {
		t.Errorf("kubeconfig leads to %v: %v", config, err)
	}

	t.Run("a member of the project", func(t *testing.T) {
		allow(t, e, "member", corev1beta1.GroupName, []string{"create"}, "shoots/adminkubeconfig", "shoots/viewerkubeconfig") //nolint:contextcheck // it takes that of t
		member := as(t, e, "member")
		eventually(ctx, t, func() error {
			_, err := request(member, 600)
			return err
		}, func(err error) bool { return err == nil })
		answer, err := request(member, 600)
		if err != nil {
			t.Fatal(err)
		}
		checkCertificate(t, answer.Status.Kubeconfig, caPEM, pkix.Name{CommonName: "gardener.cloud:user:member", Organization: []string{"gardener.cloud:project:admins"}}, 10*time.Minute)
		viewer := &authenticationv1alpha1.ViewerKubeconfigRequest{}
		if err := member.SubResource("viewerkubeconfig").Create(ctx, shoot, viewer); err != nil {
			t.Fatal(err)
		}
		checkCertificate(t, viewer.Status.Kubeconfig, caPEM, pkix.Name{CommonName: "gardener.cloud:user:member", Organization: []string{"gardener.cloud:project:viewers"}}, time.Hour)
	})
	t.Run("a stranger", func(t *testing.T) {
		if _, err := request(as(t, e, "stranger"), 600); !apierrors.IsForbidden(err) {
			t.Errorf("answer is %v, want forbidden", err)
		}
	})
	t.Run("a dry run", func(t *testing.T) {
		request := &authenticationv1alpha1.AdminKubeconfigRequest{}
		if err := c.SubResource("adminkubeconfig").Create(ctx, shoot, request, client.DryRunAll); err != nil || len(request.Status.Kubeconfig) != 0 {
			t.Errorf("answer is %v with a kubeconfig of %d bytes, want none", err, len(request.Status.Kubeconfig))
		}
	})
	t.Run("too short, and a shoot that does not exist", func(t *testing.T) {
		if _, err := request(c, 60); !apierrors.IsInvalid(err) {
			t.Errorf("a minute: %v, want invalid", err)
		}
		shoot = newShoot("missing")
		if _, err := request(c, 600); !apierrors.IsNotFound(err) {
			t.Errorf("missing shoot: %v, want not found", err)
		}
	})
}

func checkCertificate(t *testing.T, kubeconfig, caPEM []byte, subject pkix.Name, lifetime time.Duration) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(config.CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if certificate.Subject.String() != subject.String() {
		t.Errorf("certificate is for %s, want %s", certificate.Subject, subject)
	}
	if left := time.Until(certificate.NotAfter); left > lifetime || left < lifetime-time.Minute {
		t.Errorf("certificate is valid for %s, want %s", left, lifetime)
	}
}

// newCA returns the CA of a shoot.
func newCA(t *testing.T) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func testBinding(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	shoot := newShoot("bound")
	shoot.Spec.Maintenance.ConfineSpecUpdateRollout = new(true)
	create(t, e, shoot)
	allow(t, e, "scheduler", corev1beta1.GroupName, []string{"update", "patch"}, "shoots/binding")
	scheduler := as(t, e, "scheduler")
	shoot.Spec.SeedName, shoot.Status.TechnicalID = new("seed-a"), "mine"
	eventually(ctx, t, func() error { return scheduler.SubResource("binding").Update(ctx, shoot) }, func(err error) bool { return err == nil })
	if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	if shoot.Spec.SeedName == nil || *shoot.Spec.SeedName != "seed-a" || shoot.Generation != 2 || shoot.Status.TechnicalID != "" {
		t.Errorf("bound to %v, generation %d, technical ID %q; want seed-a, 2 and none", shoot.Spec.SeedName, shoot.Generation, shoot.Status.TechnicalID)
	}
	stale := shoot.DeepCopy()
	stale.ResourceVersion, stale.Spec.SeedName = "1", new("seed-b")
	if err := scheduler.SubResource("binding").Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("binding of an old version: %v, want a conflict", err)
	}
	invalid := shoot.DeepCopy()
	invalid.Spec.Region = "elsewhere"
	if err := scheduler.SubResource("binding").Update(ctx, invalid); !apierrors.IsInvalid(err) {
		t.Errorf("binding that changes the region: %v, want invalid", err)
	}
	if err := scheduler.Update(ctx, shoot); !apierrors.IsForbidden(err) {
		t.Errorf("update of the shoot by a user who may only bind: %v, want forbidden", err)
	}
}

func testTokens(t *testing.T, e *env.Env, files files) {
	ctx, c := t.Context(), e.Client
	identity := create(t, e, &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "identity"},
		Spec:       securityv1alpha1.WorkloadIdentitySpec{Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}},
		Status:     securityv1alpha1.WorkloadIdentityStatus{Sub: "another subject"},
	})
	if want := "gardener.cloud:workloadidentity:garden-dev:identity:" + string(identity.UID); identity.Status.Sub != want {
		t.Errorf("subject is %q, want %q", identity.Status.Sub, want)
	}
	seed := create(t, e, builder.Seed("claimed"))
	project := &corev1beta1.Project{}
	if err := c.Get(ctx, client.ObjectKey{Name: "dev"}, project); err != nil {
		t.Fatal(err)
	}
	shoot := newShoot("claimed")
	shoot.Spec.SeedName = new(seed.Name)
	uses := autoscalingv1.CrossVersionObjectReference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: identity.Name}
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "identity", ResourceRef: uses}}
	create(t, e, shoot)
	request := func(c client.Client, seconds int64, about *securityv1alpha1.ContextObject) (jwt.MapClaims, error) {
		request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(seconds), ContextObject: about}}
		if err := c.SubResource("token").Create(ctx, identity, request); err != nil {
			return nil, err
		}
		claims := jwt.MapClaims{}
		_, err := jwt.ParseWithClaims(request.Status.Token, claims, func(*jwt.Token) (any, error) { return files.tokenKey.Public(), nil },
			jwt.WithIssuer(tokenIssuer), jwt.WithAudience("cloud"), jwt.WithSubject(identity.Status.Sub), jwt.WithExpirationRequired())
		if lifetime := time.Duration(claims["exp"].(float64)-claims["iat"].(float64)) * time.Second; lifetime != min(max(time.Duration(seconds)*time.Second, time.Hour), 48*time.Hour) {
			t.Errorf("token for %d seconds lives for %s", seconds, lifetime)
		}
		return claims, err
	}
	object := func(obj client.Object) map[string]any {
		claim := map[string]any{"name": obj.GetName(), "uid": string(obj.GetUID())}
		if obj.GetNamespace() != "" {
			claim["namespace"] = obj.GetNamespace()
		}
		return claim
	}
	about := &securityv1alpha1.ContextObject{
		APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: new(devNamespace), Name: shoot.Name, UID: shoot.UID,
	}
	for _, seconds := range []int64{600, 7200, 1 << 30} {
		claims, err := request(c, seconds, about)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"workloadIdentity": object(identity)}, claims["gardener.cloud"]); diff != "" {
			t.Errorf("claims for a user who is not a gardenlet (-want +got):\n%s", diff)
		}
	}
	gardenlet := as(t, e, "gardener.cloud:system:seed:claimed", "gardener.cloud:system:seeds", "system:masters")
	claims, err := request(gardenlet, 3600, about)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"workloadIdentity": object(identity), "shoot": object(shoot), "seed": object(seed), "project": object(project)}
	if diff := cmp.Diff(want, claims["gardener.cloud"]); diff != "" {
		t.Errorf("claims for a gardenlet (-want +got):\n%s", diff)
	}
	other := as(t, e, "gardener.cloud:system:seed:other", "gardener.cloud:system:seeds", "system:masters")
	if _, err := request(other, 3600, about); !apierrors.IsForbidden(err) {
		t.Errorf("context of another seed: %v, want forbidden", err)
	}
	if _, err := request(gardenlet, 3600, &securityv1alpha1.ContextObject{
		APIVersion: about.APIVersion, Kind: "Seed", Name: seed.Name, UID: seed.UID,
	}); !apierrors.IsForbidden(err) {
		t.Errorf("context that does not use the identity: %v, want forbidden", err)
	}
	about.UID = "other"
	if _, err := request(gardenlet, 3600, about); !apierrors.IsConflict(err) {
		t.Errorf("context with another UID: %v, want a conflict", err)
	}
	about.Kind = "Quota"
	if _, err := request(gardenlet, 3600, about); !apierrors.IsBadRequest(err) {
		t.Errorf("context of a kind without claims: %v, want a bad request", err)
	}
	identity.Spec.Audiences, identity.Status.Sub = []string{"cloud", "other"}, "another subject"
	if err := c.Update(ctx, identity); err != nil || !strings.HasSuffix(identity.Status.Sub, string(identity.UID)) {
		t.Errorf("after an update (%v) the subject is %q", err, identity.Status.Sub)
	}
}

func testScale(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	labels := map[string]string{"set": "a"}
	shoot := newShoot("replica")
	config, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"seedConfig": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": builder.Seed("set").Spec},
	})
	if err != nil {
		t.Fatal(err)
	}
	set := create(t, e, &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "set"},
		Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{
			Replicas: new(int32(1)), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: seedmanagementv1alpha1.ManagedSeedTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: seedmanagementv1alpha1.ManagedSeedSpec{
					Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: config}},
				},
			},
			ShootTemplate: corev1beta1.ShootTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: shoot.Spec,
			},
		},
	})
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(ctx, set, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 1 || scale.Status.Selector != "set=a" || scale.UID != set.UID {
		t.Errorf("scale is %+v", scale)
	}
	scale.Spec.Replicas = 2
	if err := c.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))
	if err := c.SubResource("scale").Patch(ctx, set, patch, client.WithSubResourceBody(scale)); err != nil || scale.Spec.Replicas != 3 {
		t.Fatalf("patch: %v, %d replicas", err, scale.Spec.Replicas)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || *set.Spec.Replicas != 3 || set.Generation != 3 {
		t.Errorf("set has %d replicas, generation %d: %v", *set.Spec.Replicas, set.Generation, err)
	}
	scale.ResourceVersion = "1"
	if err := c.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale)); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v, want a conflict", err)
	}
	scale.ResourceVersion, scale.Spec.Replicas = "", -1
	if err := c.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale)); !apierrors.IsInvalid(err) {
		t.Errorf("fewer than none: %v, want invalid", err)
	}
}
