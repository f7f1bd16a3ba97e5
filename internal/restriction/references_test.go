package restriction

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// readable is what the user may get in these tests.
const readable = "secrets/garden/readable"

// mayGet allows to get some objects: resource, namespace and name. It fails for those that begin with "broken".
func mayGet(t *testing.T, names ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() != "get" || !a.IsResourceRequest() {
			t.Errorf("asked for %s", a.GetVerb())
		}
		if strings.HasPrefix(a.GetName(), "broken") {
			return authorizer.DecisionNoOpinion, "", errors.New("the authorizer is broken")
		}
		if slices.Contains(names, a.GetResource()+"/"+a.GetNamespace()+"/"+a.GetName()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func TestReferences(t *testing.T) {
	ref := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name}
	}
	backup := func(name string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.Backup = &corev1beta1.Backup{CredentialsRef: new(ref(name))} }
	}
	identity := func(s *corev1beta1.Seed) {
		r := ref("stolen")
		r.APIVersion, r.Kind = "security.gardener.cloud/v1alpha1", "WorkloadIdentity"
		s.Spec.Backup = &corev1beta1.Backup{CredentialsRef: &r}
	}
	provider := func(name string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Spec.DNS.Provider = &corev1beta1.SeedDNSProvider{CredentialsRef: new(ref(name))}
		}
	}
	internal := func(name string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{CredentialsRef: ref(name)}
		}
	}
	defaults := func(name string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{CredentialsRef: ref(name)}}
		}
	}
	resources := func(kind string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			r := autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "stolen"}
			s.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "r", ResourceRef: r}}
		}
	}
	const config = `{"seedConfig": {"spec": {"backup": {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "declared"}}}}}`
	gardenlet := func(config string) *seedmanagementv1alpha1.Gardenlet {
		g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo")}
		if config != "" {
			g.Spec.Config = &runtime.RawExtension{Raw: []byte(config)}
		}
		return g
	}
	registered := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta("garden", "registered-seeds"), Data: map[string]string{name: ""}}
	}
	withKubeconfig := func(name string) *seedmanagementv1alpha1.Gardenlet {
		g := gardenlet("")
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: name}
		return g
	}
	credentials := func(b *corev1beta1.BackupBucket, name string) *corev1beta1.BackupBucket {
		b.Spec.CredentialsRef = new(ref(name))
		return b
	}
	generated := func(name string) *corev1beta1.BackupBucket {
		b := bucket("b", "foo")
		b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: name}
		return b
	}
	installation := func(deployment string) *corev1beta1.ControllerInstallation {
		i := &corev1beta1.ControllerInstallation{ObjectMeta: meta("", "i")}
		i.Spec.DeploymentRef = &corev1.ObjectReference{Name: deployment}
		return i
	}
	bound := func(binding string) *corev1beta1.Shoot {
		return shoot(project, "mine", "foo", func(s *corev1beta1.Shoot) { s.Spec.CredentialsBindingName = &binding })
	}
	selfHostedShoot := shoot(project, "mine", "", func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Workers = []corev1beta1.Worker{{ControlPlane: &corev1beta1.WorkerControlPlane{Backup: &corev1beta1.Backup{CredentialsRef: new(ref("own"))}}}}
	})
	seedUsers, shootUsers := []user.Info{seedGardenletUser, seedExtensionUser}, []user.Info{shootGardenletUser, shootExtensionUser}
	for name, tc := range map[string]struct {
		users    []user.Info
		obj, old client.Object
		stored   []client.Object
		broken   string
		want     int32
	}{
		"backups of the seed":                    {users: seedUsers, obj: seed("foo", backup("stolen")), old: seed("foo"), want: 403},
		"backups of the seed, by an identity":    {users: seedUsers, obj: seed("foo", identity), old: seed("foo"), want: 403},
		"domain of the seed":                     {users: seedUsers, obj: seed("foo", provider("stolen")), old: seed("foo"), want: 403},
		"internal domain of the seed":            {users: seedUsers, obj: seed("foo", internal("stolen")), old: seed("foo"), want: 403},
		"default domain of the seed":             {users: seedUsers, obj: seed("foo", defaults("stolen")), old: seed("foo"), want: 403},
		"a Secret of the seed":                   {users: seedUsers, obj: seed("foo", resources("Secret")), old: seed("foo"), want: 403},
		"a ConfigMap of the seed":                {users: seedUsers, obj: seed("foo", resources("ConfigMap")), old: seed("foo"), want: 403},
		"another one than before":                {users: seedUsers, obj: seed("foo", backup("stolen")), old: seed("foo", backup("old")), want: 403},
		"the same as before":                     {users: seedUsers, obj: seed("foo", backup("old")), old: seed("foo", backup("old"))},
		"the same at another place":              {users: seedUsers, obj: seed("foo", provider("old")), old: seed("foo", backup("old"))},
		"none any more":                          {users: seedUsers, obj: seed("foo"), old: seed("foo", backup("old"))},
		"what it may read":                       {users: seedUsers, obj: seed("foo", backup("readable")), old: seed("foo")},
		"what its Gardenlet names":               {users: seedUsers, obj: seed("foo", backup("declared")), old: seed("foo"), stored: []client.Object{gardenlet(config)}},
		"what its ManagedSeed names":             {users: seedUsers, obj: seed("foo", backup("declared")), old: seed("foo"), stored: []client.Object{template(managedSeed("garden", "foo", "s"), config)}},
		"what a Gardenlet of another seed names": {users: seedUsers, obj: seed("foo", backup("declared")), old: seed("foo"), stored: []client.Object{template(managedSeed("garden", "bar", "s"), config)}, want: 403},
		"registered by itself":                   {users: []user.Info{seedGardenletUser}, obj: seed("foo", backup("stolen"))},
		"registered again":                       {users: seedUsers, obj: seed("foo", backup("stolen")), stored: []client.Object{registered("foo")}, want: 403},
		"registered again, as a Gardenlet says":  {users: seedUsers, obj: seed("foo", backup("declared")), stored: []client.Object{registered("foo"), gardenlet(config)}},
		"registered, unlike another":             {users: []user.Info{seedGardenletUser}, obj: seed("foo", backup("stolen")), stored: []client.Object{registered("bar")}},
		"registered Seeds are unreadable":        {users: []user.Info{seedGardenletUser}, obj: seed("foo", backup("stolen")), broken: "ConfigMap", want: 500},
		"registered by an extension":             {users: []user.Info{seedExtensionUser}, obj: seed("foo", backup("stolen")), want: 403},
		"registered with its Gardenlet":          {users: seedUsers, obj: seed("foo", backup("declared")), stored: []client.Object{gardenlet(config)}},
		"registered unlike its Gardenlet":        {users: seedUsers, obj: seed("foo", backup("stolen")), stored: []client.Object{gardenlet(config)}, want: 403},
		"registered unlike its ManagedSeed":      {users: seedUsers, obj: seed("foo", backup("stolen")), stored: []client.Object{managedSeed("garden", "foo", "s")}, want: 403},
		"Gardenlet is unreadable":                {users: seedUsers, obj: seed("foo", backup("stolen")), broken: "Gardenlet", want: 500},
		"ManagedSeed is unreadable":              {users: seedUsers, obj: seed("foo", backup("stolen")), old: seed("foo"), broken: "ManagedSeed", want: 500},
		"authorizer is broken":                   {users: seedUsers, obj: seed("foo", backup("broken")), old: seed("foo"), want: 500},
		"by an operator":                         {users: []user.Info{someUser, oddUser}, obj: seed("foo", backup("stolen")), old: seed("foo")},
		"deleted":                                {users: seedUsers, old: seed("foo", backup("stolen"))},

		"BackupBucket":                      {users: seedUsers, obj: credentials(bucket("b", "foo"), "stolen"), stored: []client.Object{seed("foo", backup("own"))}, want: 403},
		"BackupBucket, like its Seed":       {users: seedUsers, obj: credentials(bucket("b", "foo"), "own"), stored: []client.Object{seed("foo", backup("own"))}},
		"BackupBucket, updated":             {users: seedUsers, obj: credentials(bucket("b", "foo"), "stolen"), old: credentials(bucket("b", "foo"), "own"), stored: []client.Object{seed("foo", backup("own"))}, want: 403},
		"BackupBucket, Seed is unreadable":  {users: seedUsers, obj: credentials(bucket("b", "foo"), "own"), broken: "Seed", want: 500},
		"generated credentials":             {users: seedUsers, obj: generated("generated-bucket-b"), old: bucket("b", "foo")},
		"generated credentials of another":  {users: seedUsers, obj: generated("generated-bucket-c"), old: bucket("b", "foo"), want: 403},
		"generated credentials, not at all": {users: seedUsers, obj: generated("stolen"), old: bucket("b", "foo"), want: 403},
		"ControllerInstallation":            {users: seedUsers, obj: installation("stolen"), old: installation("old"), want: 403},
		"ControllerInstallation, the same":  {users: seedUsers, obj: installation("old"), old: installation("old")},
		"ManagedSeed":                       {users: seedUsers, obj: template(managedSeed("garden", "m", "s"), config), old: managedSeed("garden", "m", "s"), want: 403},
		"Gardenlet":                         {users: seedUsers, obj: gardenlet(config), old: gardenlet(""), want: 403},
		"Gardenlet, a kubeconfig":           {users: seedUsers, obj: withKubeconfig("stolen"), old: gardenlet(""), want: 403},
		"Gardenlet, the same kubeconfig":    {users: seedUsers, obj: withKubeconfig("old"), old: withKubeconfig("old")},
		"Seed, the kubeconfig of its own":   {users: seedUsers, obj: seed("foo", backup("stolen")), old: seed("foo"), stored: []client.Object{withKubeconfig("stolen")}, want: 403},
		"Gardenlet, created":                {users: seedUsers, obj: gardenlet(config), want: 403},
		"Shoot":                             {users: append(seedUsers, shootUsers...), obj: bound("stolen"), old: bound("old"), want: 403},
		"Shoot, the same":                   {users: append(seedUsers, shootUsers...), obj: bound("old"), old: bound("old")},
		"of no known kind":                  {users: seedUsers, obj: secret("garden", "x")},

		"BackupBucket of a shoot":                 {users: shootUsers, obj: credentials(shootBucket("b", "mine"), "stolen"), stored: []client.Object{selfHostedShoot}, want: 403},
		"BackupBucket of a shoot, like its Shoot": {users: shootUsers, obj: credentials(shootBucket("b", "mine"), "own"), stored: []client.Object{selfHostedShoot}},
		"by gardenadm":                            {users: []user.Info{gardenadmUser}, obj: bound("any")},
	} {
		for _, u := range tc.users {
			t.Run(name+"/"+u.GetName(), func(t *testing.T) {
				r := &Request{User: u, Object: tc.obj, Old: tc.old}
				check(t, values(t, tc.broken, tc.stored...).References(t.Context(), r, mayGet(t, readable)), tc.want, "")
			})
		}
	}
}
