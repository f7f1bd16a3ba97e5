package attack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// A user with the credentials of a gardenlet can write what gardenlets write. They must not get credentials of others by the objects that it
// creates, nor by what these refer to, nor pretend to others to be more than its seed.
func TestGardenletWritesOnlyWhatIsOfItsSeed(t *testing.T) {
	g := startWith(t, env.Lenient("SeedRestriction", "ShootRestriction"), env.WithAdmissionController())
	ctx := t.Context()
	if err := kube.Apply(ctx, g.c, "test", gardenrbac.Objects()...); err != nil {
		t.Fatal(err)
	}
	g.CallWebhooks(t)
	reference := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name}
	}
	secret := func(namespace, name string, labels ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		return s
	}
	bucket := func(name, seed, credentials string) *corev1beta1.BackupBucket {
		return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: &seed, CredentialsRef: new(reference(credentials)),
		}}
	}
	entry := func(name, bucket string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: name}, Spec: corev1beta1.BackupEntrySpec{
			BucketName: bucket, SeedName: new(seedName),
		}}
	}
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: name}}
	}
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "shared"}, Spec: securityv1alpha1.WorkloadIdentitySpec{
		Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
	}}
	uses := corev1beta1.NamedResourceReference{Name: "identity", ResourceRef: autoscalingv1.CrossVersionObjectReference{
		APIVersion: securityv1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity", Name: identity.Name,
	}}
	mine, theirs := newShoot("mine"), newShoot("theirs")
	mine.Spec.Resources, theirs.Spec.Resources = []corev1beta1.NamedResourceReference{uses}, []corev1beta1.NamedResourceReference{uses}
	theirs.Spec.SeedName = new("other")
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: corev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: "r"}, SeedRef: &corev1.ObjectReference{Name: seedName}, DeploymentRef: &corev1.ObjectReference{Name: "d"},
	}}
	gardenletOf := func(seed string) *seedmanagementv1alpha1.Gardenlet {
		config := fmt.Sprintf(`{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":{"spec":%s}}`, encoded(t, builder.Seed(seed).Spec))
		g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: seed}}
		g.Spec.Config = &runtime.RawExtension{Raw: []byte(config)}
		g.Spec.Deployment.Helm.OCIRepository.Ref = new("registry.example/gardenlet:v1")
		return g
	}
	ownGardenlet := gardenletOf(seedName)
	ownBucket, ownEntry := bucket("own", seedName, "dns"), entry("own", "own")
	g.create(t,
		namespace("seed-other"), secret("garden", "stolen"), identity,
		builder.Seed("other"), mine, theirs, ownBucket, bucket("theirs", "other", "stolen"), ownEntry, installation,
		secret(attackers, "mine.ssh-keypair", "gardener.cloud/role", "ssh-keypair"), ownGardenlet,
	)
	own := &corev1beta1.Seed{}
	if err := g.c.Get(ctx, client.ObjectKey{Name: seedName}, own); err != nil {
		t.Fatal(err)
	}
	attacker, err := client.New(g.Gardenlet(t, seedName), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	// change writes an object as the attacker, with a merge patch of what differs.
	change := func(obj client.Object, change func(client.Object), status bool) error {
		after := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		change(after)
		if status {
			return attacker.Status().Patch(ctx, after, client.MergeFrom(obj), &client.SubResourcePatchOptions{})
		}
		return attacker.Patch(ctx, after, client.MergeFrom(obj))
	}
	spec := func(edit func(*corev1beta1.SeedSpec)) func() error {
		return func() error {
			return change(own, func(o client.Object) { edit(&o.(*corev1beta1.Seed).Spec) }, false) //nolint:forcetypeassert // a copy of a Seed
		}
	}
	token := func(of *corev1beta1.Shoot) error {
		request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(3600)), ContextObject: &securityv1alpha1.ContextObject{
			APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Shoot", Namespace: &of.Namespace, Name: of.Name, UID: of.UID,
		}}}
		return attacker.SubResource("token").Create(ctx, identity.DeepCopy(), request)
	}

	// What a gardenlet does all day. The authorizer learns of new objects in a moment.
	for name, try := range map[string]func() error{
		"label its Seed": func() error {
			return change(own, func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }, false)
		},
		"refer to what it may read already": spec(func(s *corev1beta1.SeedSpec) {
			s.Backup = &corev1beta1.Backup{Provider: "local", CredentialsRef: new(reference("dns"))}
		}),
		"create its BackupBucket": func() error { return attacker.Create(ctx, bucket(string(own.UID), seedName, "dns")) },
		"create a BackupEntry":    func() error { return attacker.Create(ctx, entry("new", "own")) },
		"renew its Lease":         func() error { return attacker.Create(ctx, lease(seedName)) },
		"publish credentials": func() error {
			return attacker.Create(ctx, secret(attackers, "mine.monitoring", "gardener.cloud/role", "monitoring"))
		},
		"create a ServiceAccount": func() error {
			return attacker.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + seedName, Name: "e"}})
		},
		"write the status of its Gardenlet": func() error {
			return change(ownGardenlet, func(o client.Object) {
				o.(*seedmanagementv1alpha1.Gardenlet).Status.ObservedGeneration = 1 //nolint:forcetypeassert // a copy
			}, true)
		},
		"request a token for its shoot": func() error { return token(mine) },
		"name the Secret of a BackupBucket": func() error {
			return change(ownBucket, func(o client.Object) {
				o.(*corev1beta1.BackupBucket).Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "generated-bucket-own"} //nolint:forcetypeassert // a copy
			}, true)
		},
	} {
		g.eventually(t, name, func() error { return client.IgnoreAlreadyExists(try()) })
	}
	// A new seed, of which the garden knows nothing yet, registers itself.
	pioneer, err := client.New(g.Gardenlet(t, "pioneer"), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := pioneer.Create(ctx, builder.Seed("pioneer")); err != nil {
		t.Errorf("a new seed does not register: %v", err)
	}
	// After it was deleted, its gardenlet may not choose what it refers to.
	known := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "registered-seeds"}, Data: map[string]string{"settler": ""}}
	if err := g.c.Create(ctx, known); err != nil {
		t.Fatal(err)
	}
	settler, err := client.New(g.Gardenlet(t, "settler"), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := settler.Create(ctx, builder.Seed("settler")); !apierrors.IsForbidden(err) {
		t.Errorf("a Seed that was deleted is registered again: %v", err)
	}
	created := gardenletOf("pioneer")
	if err := pioneer.Create(ctx, created); err != nil || created.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] != "true" {
		t.Errorf("its gardenlet creates a Gardenlet with the annotations %v: %v", created.Annotations, err)
	}

	filled := secret(attackers, "mine.ca-cluster")
	filled.Type, filled.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	for name, refused := range map[string]*corev1.Secret{
		"secrets-of-gardenlets": filled,
		"roles-of-secrets":      secret("garden", "generated-bucket-own", "gardener.cloud/role", "global-monitoring"),
	} {
		g.eventually(t, "the policy "+name+" is in effect", func() error {
			if err := attacker.Create(ctx, refused.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
				return fmt.Errorf("the Secret is not refused: %w", err)
			}
			return nil
		})
	}
	stolen := reference("stolen")
	for name, try := range map[string]func() error{
		"by the backups of its Seed": spec(func(s *corev1beta1.SeedSpec) {
			s.Backup = &corev1beta1.Backup{Provider: "local", CredentialsRef: &stolen}
		}),
		"by the domain of its Seed":          spec(func(s *corev1beta1.SeedSpec) { s.DNS.Provider.CredentialsRef = &stolen }),
		"by the internal domain of its Seed": spec(func(s *corev1beta1.SeedSpec) { s.DNS.Internal.CredentialsRef = stolen }),
		"by a default domain of its Seed": spec(func(s *corev1beta1.SeedSpec) {
			s.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{Type: "local", Domain: "default.example.com", CredentialsRef: stolen}}
		}),
		"by a resource of its Seed": spec(func(s *corev1beta1.SeedSpec) {
			s.Resources = []corev1beta1.NamedResourceReference{{Name: "r", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "stolen"}}}
		}),
		// The gardener-operator would deploy it, with the rights of an administrator of the cluster.
		"by the chart of its Gardenlet": func() error {
			return change(ownGardenlet, func(o client.Object) {
				o.(*seedmanagementv1alpha1.Gardenlet).Spec.Deployment.Helm.OCIRepository.Ref = new("registry.evil/gardenlet:v1") //nolint:forcetypeassert // a copy
			}, false)
		},
		"by the kubeconfig of its Gardenlet": func() error {
			return change(ownGardenlet, func(o client.Object) {
				o.(*seedmanagementv1alpha1.Gardenlet).Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "stolen"} //nolint:forcetypeassert // a copy
			}, false)
		},
		"by an operation of its Gardenlet": func() error {
			return change(ownGardenlet, func(o client.Object) {
				o.SetAnnotations(map[string]string{"gardener.cloud/operation": "force-redeploy"})
			}, false)
		},
		"by an operation in the status of its Gardenlet": func() error {
			return change(ownGardenlet, func(o client.Object) {
				o.SetAnnotations(map[string]string{"gardener.cloud/operation": "force-redeploy"})
			}, true)
		},
		"by the Gardenlet of another seed": func() error { return attacker.Create(ctx, gardenletOf("other")) },
		"by a BackupBucket":                func() error { return attacker.Create(ctx, bucket("evil", seedName, "stolen")) },
		"by its own BackupBucket": func() error {
			return change(ownBucket, func(o client.Object) { o.(*corev1beta1.BackupBucket).Spec.CredentialsRef = &stolen }, false) //nolint:forcetypeassert // a copy
		},
		"by the status of a BackupBucket": func() error {
			return change(ownBucket, func(o client.Object) {
				o.(*corev1beta1.BackupBucket).Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "stolen"} //nolint:forcetypeassert // a copy
			}, true)
		},
		"by a BackupEntry": func() error { return attacker.Create(ctx, entry("evil", "theirs")) },
		"by its own BackupEntry": func() error {
			return change(ownEntry, func(o client.Object) { o.(*corev1beta1.BackupEntry).Spec.BucketName = "theirs" }, false) //nolint:forcetypeassert // a copy
		},
		"by a ControllerInstallation": func() error {
			return change(installation, func(o client.Object) {
				o.(*corev1beta1.ControllerInstallation).Spec.DeploymentRef.Name = "stolen" //nolint:forcetypeassert // a copy
			}, false)
		},
		"by its Shoot": func() error {
			return change(mine, func(o client.Object) { o.(*corev1beta1.Shoot).Spec.CredentialsBindingName = new("stolen") }, false) //nolint:forcetypeassert // a copy
		},
		"by a token in the name of another shoot": func() error { return token(theirs) },
		"by the BackupBucket of another seed":     func() error { return attacker.Create(ctx, bucket("evil", "other", "dns")) },
		"by a Secret for all seeds": func() error {
			return attacker.Create(ctx, secret("garden", "evil", "gardener.cloud/role", "global-monitoring"))
		},
		"by a Secret of a BackupBucket, for all": func() error {
			return attacker.Create(ctx, secret("garden", "generated-bucket-own", "gardener.cloud/role", "global-monitoring"))
		},
		"by a Secret in the namespace of another":  func() error { return attacker.Create(ctx, secret("seed-other", "evil")) },
		"by the Secret of a shoot of another seed": func() error { return attacker.Create(ctx, secret(attackers, "theirs.monitoring")) },
		"by the Lease of another seed":             func() error { return attacker.Create(ctx, lease("other")) },
		"by a ServiceAccount in the garden": func() error {
			return attacker.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "evil"}})
		},
		// It would be free to refer to anything when it registers again.
		"by its Seed, registered again": func() error { return attacker.Delete(ctx, own, client.DryRunAll) },
		// Nobody else could have a Shoot with such a name.
		"by a domain that everybody has names in": spec(func(s *corev1beta1.SeedSpec) { s.DNS.Internal.Domain = "com" }),
		"by another Seed":                         func() error { return attacker.Create(ctx, builder.Seed("evil")) },
		"by the state of another shoot": func() error {
			return attacker.Create(ctx, &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "theirs"}})
		},
		"by the CA of another shoot": func() error {
			return attacker.Create(ctx, &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "theirs.ca-client"}})
		},
		"by a Secret with a token": func() error { return attacker.Create(ctx, filled.DeepCopy()) },
	} {
		err := try()
		if !apierrors.IsForbidden(err) {
			t.Errorf("the gardenlet of one seed gets further %s: %v", name, err)
			continue
		}
		// It is the admission that refuses: the authorizer lets gardenlets write these objects.
		if reason := fmt.Sprint(err); strings.Contains(reason, "cannot create resource") || strings.Contains(reason, "cannot patch resource") {
			t.Errorf("%s: the request did not get to the admission: %v", name, err)
		}
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A gardenlet may write the bootstrap token for a seed on one of its shoots. If it said later that the token is for another seed, it would get
// the certificate of that one. Nor may it change the credentials that several seeds use.
func TestGardenletDoesNotChangeSecretsOfOthers(t *testing.T) {
	g := start(t)
	ctx, user := t.Context(), "gardener.cloud:system:seed:"+seedName
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-0child"}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"description": bootstraptoken.ForSeed("child"), "token-id": "0child", "token-secret": "0123456789abcdef"},
	}
	// The role stands for the authorizer, which allows it while the token is needed.
	meta := metav1.ObjectMeta{Name: "writes-the-token"}
	g.create(t, token,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	if err := kube.Apply(ctx, g.c, "test", gardenrbac.Objects()...); err != nil {
		t.Fatal(err)
	}
	attacker, err := client.New(g.As(t, user, "gardener.cloud:system:seeds"), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(key, value string) error {
		data := fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value)
		return attacker.Patch(ctx, token.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(data)))
	}
	other := 0
	g.eventually(t, "the token is for another seed", func() error { // a new policy takes a moment
		other++
		if err := patch("description", bootstraptoken.ForSeed(fmt.Sprintf("other-%d", other))); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it was not refused: %w", err)
		}
		return nil
	})
	if err := patch("auth-extra-groups", "system:bootstrappers:more"); !apierrors.IsForbidden(err) {
		t.Errorf("the token has another group now: %v", err)
	}
	shared := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "shared"}}
	g.create(t, shared)
	if err := attacker.Patch(ctx, shared.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"domain":"evil.example.com"}}`))); !apierrors.IsForbidden(err) {
		t.Errorf("a Secret that seeds share was changed: %v", err)
	}
	if err := attacker.Patch(ctx, shared.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["gardener.cloud/gardener"]}}`))); err != nil {
		t.Errorf("a Secret does not get the finalizer of a gardenlet: %v", err)
	}
	if err := patch("expiration", "2035-01-01T00:00:00Z"); err != nil {
		t.Errorf("a token cannot be renewed: %v", err)
	}
}

// A gardenlet reads what its Shoots refer to, which Shoots on other seeds may use too. Whoever writes the configuration of the authentication of a
// cluster is its administrator; credentials of another account get the resources of others; a WorkloadIdentity with another audience is
// valid elsewhere.
func TestGardenletDoesNotChangeWhatOthersUse(t *testing.T) {
	g := startWith(t, env.Lenient(), env.WithAdmissionController())
	ctx := t.Context()
	if err := kube.Apply(ctx, g.c, "test", gardenrbac.Objects()...); err != nil {
		t.Fatal(err)
	}
	g.CallWebhooks(t)
	meta := metav1.ObjectMeta{Namespace: attackers, Name: "shared"}
	resource := func(kind, version string) corev1beta1.NamedResourceReference {
		return corev1beta1.NamedResourceReference{Name: strings.ToLower(kind), ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, APIVersion: version, Name: meta.Name}}
	}
	configMap := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"config.yaml": "of the owner"}}
	internal := &corev1beta1.InternalSecret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("of the owner")}}
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{
		Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
	}}
	credentials := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("of the owner")}}
	ofManagedSeed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "of-a-managed-seed", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: seedmanagementv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedSeed", Name: "a", UID: "a"},
	}}}
	// The Secrets of BackupBuckets are in namespace "garden".
	generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "generated-bucket-of-the-owner"}}
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     meta,
		CredentialsRef: corev1.ObjectReference{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "InternalSecret", Namespace: attackers, Name: meta.Name},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
	}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "mine.ca-cluster"}}
	authority := &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "mine.ca-client"}}
	mine := newShoot("mine")
	mine.Spec.CredentialsBindingName = &binding.Name
	mine.Spec.Resources = []corev1beta1.NamedResourceReference{
		resource("WorkloadIdentity", securityv1alpha1.SchemeGroupVersion.String()), resource("Secret", "v1"),
	}
	for _, secret := range []*corev1.Secret{ofManagedSeed, generated} {
		mine.Spec.Resources = append(mine.Spec.Resources, corev1beta1.NamedResourceReference{Name: secret.Name, ResourceRef: autoscalingv1.CrossVersionObjectReference{
			Kind: "Secret", APIVersion: "v1", Name: secret.Name,
		}})
	}
	mine.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: meta.Name}}
	g.create(t, configMap, internal, identity, credentials, ofManagedSeed, generated, binding, published, authority, mine)
	attacker, err := client.New(g.Gardenlet(t, seedName), client.Options{Scheme: g.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(obj client.Object, data string) error {
		return attacker.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(data))) //nolint:forcetypeassert // a copy has its original's type
	}
	for name, try := range map[string]func() error{
		"the finalizer of a ConfigMap":        func() error { return patch(configMap, `{"metadata":{"finalizers":["gardener.cloud/gardener"]}}`) },
		"the finalizer of a Secret":           func() error { return patch(credentials, `{"metadata":{"finalizers":["gardener.cloud/gardener"]}}`) },
		"the annotation of an owned Secret":   func() error { return patch(ofManagedSeed, `{"metadata":{"annotations":{"a":"b"}}}`) },
		"the finalizer of an InternalSecret":  func() error { return patch(internal, `{"metadata":{"finalizers":["gardener.cloud/gardener"]}}`) },
		"the finalizer of a WorkloadIdentity": func() error { return patch(identity, `{"metadata":{"finalizers":["gardener.cloud/gardener"]}}`) },
		"what is published":                   func() error { return patch(published, `{"data":{"ca.crt":"new"}}`) },
		"the CA of its shoot":                 func() error { return patch(authority, `{"data":{"ca.crt":"bmV3"}}`) },
	} {
		g.eventually(t, name, try)
	}
	remove := func(obj client.Object) error { return attacker.Delete(ctx, obj, client.DryRunAll) }
	attempt := 0
	attacks := map[string]func() error{
		"the authentication of clusters": func() error {
			attempt++
			return patch(configMap, fmt.Sprintf(`{"data":{"config.yaml":"evil %d"}}`, attempt))
		},
		"the existence of a ConfigMap": func() error { return remove(configMap) },
		"credentials": func() error {
			attempt++
			return patch(internal, fmt.Sprintf(`{"stringData":{"key":"evil %d"}}`, attempt))
		},
		"the existence of credentials": func() error { return remove(internal) },
		"whom tokens are for": func() error {
			attempt++
			return patch(identity, fmt.Sprintf(`{"spec":{"audiences":["evil-%d"]}}`, attempt))
		},
		"the label of a ConfigMap": func() error {
			attempt++
			return patch(configMap, fmt.Sprintf(`{"metadata":{"labels":{"evil":"%d"}}}`, attempt))
		},
		"Secrets": func() error {
			attempt++
			return patch(credentials, fmt.Sprintf(`{"stringData":{"key":"evil %d"}}`, attempt))
		},
		"Secrets with a name of BackupBuckets": func() error {
			attempt++
			return patch(generated, fmt.Sprintf(`{"stringData":{"key":"evil %d"}}`, attempt))
		},
		// Their owner is no proof of who wrote it.
		"Secrets of ManagedSeeds": func() error {
			attempt++
			return patch(ofManagedSeed, fmt.Sprintf(`{"stringData":{"key":"evil %d"}}`, attempt))
		},
	}
	dryRun := func(obj client.Object, data string) func() error {
		return func() error {
			return attacker.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(data)), client.DryRunAll) //nolint:forcetypeassert // a copy has its original's type
		}
	}
	for kind, obj := range map[string]client.Object{"ConfigMap": configMap, "InternalSecret": internal, "Secret": credentials, "WorkloadIdentity": identity} {
		// The garbage collector deletes what has only owners that do not exist.
		attacks["the existence of a "+kind+", by its owner"] = dryRun(obj, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`)
		attacks["the owner of a "+kind+", to be exempt"] = dryRun(obj, `{"metadata":{"ownerReferences":[{"apiVersion":"x/v1","kind":"ManagedSeed","name":"none","uid":"none"}]}}`)
		if kind != "WorkloadIdentity" {
			attacks["whether a "+kind+" can be changed"] = dryRun(obj, `{"immutable":true}`)
		}
	}
	attacks["the owner of a Secret, to none"] = dryRun(ofManagedSeed, `{"metadata":{"ownerReferences":null}}`)
	for name, try := range attacks {
		g.eventually(t, name, func() error { // a new policy takes a moment
			if err := try(); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "cannot patch resource") || strings.Contains(err.Error(), "cannot delete resource") {
				return fmt.Errorf("a gardenlet changes %s, or does not get to the policies: %w", name, err)
			}
			return nil
		})
	}
	for name, obj := range map[string]client.Object{"what is published": published, "the CA of its shoot": authority} {
		if err := attacker.Delete(ctx, obj); err != nil {
			t.Errorf("%s is not deleted: %v", name, err)
		}
	}
}
