package restriction

import (
	"context"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

var seedUsers = []user.Info{seedGardenletUser, seedExtensionUser}

// maySeedBootstrap are the cases of what the gardenlet of ManagedSeed garden/m gets its certificate with.
func maySeedBootstrap(obj func() (o test)) map[string]test {
	with := func(want int32, names string, tc test) test {
		made := obj()
		made.stored, made.broken, made.want, made.names = tc.stored, tc.broken, want, names
		return made
	}
	m := managedSeed("garden", "m", "s")
	on := func(name string) *corev1beta1.Shoot { return shoot("garden", "s", name) }
	stored := func(objs ...client.Object) test { return test{stored: objs} }
	broken := func(kind string) test {
		tc := stored(m, on("foo"), seed("m"))
		tc.broken = kind
		return tc
	}
	return map[string]test{
		"no ManagedSeed":                with(403, "ManagedSeed garden/m does not exist", test{}),
		"the ManagedSeed is unreadable": with(500, "broken", broken("ManagedSeed")),
		"a ManagedSeed without a Shoot": with(403, "has no Shoot", stored(managedSeed("garden", "m", ""))),
		"no Shoot":                      with(500, "Shoot garden/s does not exist", stored(m)),
		"the Shoot is unreadable":       with(500, "broken", broken("Shoot")),
		"of another seed":               with(403, `"foo"`, stored(m, on("bar"))),
		"of no seed":                    with(403, `"foo"`, stored(m, on(""))),
		"no Seed yet":                   with(0, "", stored(m, on("foo"))),
		"the Seed is unreadable":        with(500, "broken", broken("Seed")),
		"bootstrapped":                  with(400, "already", stored(m, on("foo"), seed("m"))),
		"with a valid certificate":      with(400, "already", stored(m, on("foo"), seed("m", expires(now.Add(time.Minute))))),
		"with an expired certificate":   with(0, "", stored(m, on("foo"), seed("m", expires(now.Add(-time.Minute))))),
		"to be renewed":                 with(0, "", stored(managedSeed("garden", "m", "s", renewed), on("foo"), seed("m"))),
	}
}

func TestSeed(t *testing.T) {
	decide := (*Values).Seed
	bastion := func(seed *string) *operationsv1alpha1.Bastion {
		return &operationsv1alpha1.Bastion{ObjectMeta: meta(project, "b"), Spec: operationsv1alpha1.BastionSpec{SeedName: seed}}
	}
	run(t, decide, backupBuckets, map[string]test{
		"own":             {object: bucket("uid-of-foo", "foo"), stored: []client.Object{seed("foo")}},
		"without a Seed":  {object: bucket("uid-of-foo", "foo"), want: 500},
		"of another seed": {object: bucket("b", "bar"), want: 403, names: `BackupBucket b does not belong to seed "foo"`},
		"of no seed":      {object: bucket("b", ""), want: 403},
		"with its name":   {object: bucket("uid-of-bar", "foo"), stored: []client.Object{seed("foo"), seed("bar")}, want: 403, names: `"uid-of-foo"`},
		"no BackupBucket": {object: seed("b"), want: 400},
		"updated":         {operation: update, object: bucket("b", "foo"), want: 400},

		"own, deleted":                {operation: remove, old: bucket("uid-of-foo", "foo"), stored: []client.Object{seed("foo")}},
		"another, deleted":            {operation: remove, old: bucket("uid-of-bar", "bar"), stored: []client.Object{seed("foo"), seed("bar")}, want: 403},
		"deleted without a Seed":      {operation: remove, old: bucket("uid-of-foo", "foo"), want: 500},
		"deleted, Seed is unreadable": {operation: remove, old: bucket("uid-of-foo", "foo"), stored: []client.Object{seed("foo")}, broken: "Seed", want: 500},
		"all deleted":                 {operation: remove, stored: []client.Object{seed("foo")}, want: 403},
	}, seedUsers...)

	restoring := func(operation corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
		return shoot(project, "s", "foo", func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: operation, State: state}
		})
	}
	processing := restoring("Restore", "Processing")
	source := backupEntry("source-e", "foo", "old", ownedBy("s"))
	run(t, decide, backupEntries, map[string]test{
		"own":                            {object: backupEntry("e", "foo", "b"), stored: []client.Object{bucket("b", "foo")}},
		"of another seed":                {object: backupEntry("e", "bar", "b"), stored: []client.Object{bucket("b", "foo")}, want: 403},
		"of no seed":                     {object: backupEntry("e", "", "b"), stored: []client.Object{bucket("b", "foo")}, want: 403},
		"in the bucket of another seed":  {object: backupEntry("e", "foo", "b"), stored: []client.Object{bucket("b", "bar")}, want: 403, names: "BackupBucket b"},
		"in the bucket of no seed":       {object: backupEntry("e", "foo", "b"), stored: []client.Object{bucket("b", "")}, want: 403},
		"in a bucket that is missing":    {object: backupEntry("e", "foo", "b"), want: 500, names: "BackupBucket b does not exist"},
		"in a bucket that is unreadable": {object: backupEntry("e", "foo", "b"), broken: "BackupBucket", want: 500},
		"no BackupEntry":                 {object: seed("b"), want: 400},
		"deleted":                        {operation: remove, old: backupEntry("e", "foo", "b"), want: 400},

		"source":                       {object: source, stored: []client.Object{processing, backupEntry("e", "foo", "old"), bucket("old", "bar")}},
		"source of another seed":       {object: backupEntry("source-e", "bar", "old", ownedBy("s")), stored: []client.Object{processing, backupEntry("e", "bar", "old")}, want: 403},
		"source without an owner":      {object: backupEntry("source-e", "foo", "old"), stored: []client.Object{processing, backupEntry("e", "foo", "old")}, want: 403, names: "no Shoot"},
		"source without a Shoot":       {object: source, stored: []client.Object{backupEntry("e", "foo", "old")}, want: 403},
		"source, Shoot is unreadable":  {object: source, stored: []client.Object{processing, backupEntry("e", "foo", "old")}, broken: "Shoot", want: 500},
		"source without an operation":  {object: source, stored: []client.Object{shoot(project, "s", "foo"), backupEntry("e", "foo", "old")}, want: 403, names: "not being restored"},
		"source of another operation":  {object: source, stored: []client.Object{restoring("Reconcile", "Processing"), backupEntry("e", "foo", "old")}, want: 403},
		"source after the restoration": {object: source, stored: []client.Object{restoring("Restore", "Succeeded"), backupEntry("e", "foo", "old")}, want: 403},
		"source without an entry":      {object: source, stored: []client.Object{processing}, want: 403, names: "BackupEntry garden-dev/e"},
		"source of another spec":       {object: source, stored: []client.Object{processing, backupEntry("e", "foo", "other")}, want: 403, names: "another spec"},

		"updated, same bucket":    {operation: update, object: backupEntry("e", "foo", "old"), old: backupEntry("e", "bar", "old"), stored: []client.Object{bucket("old", "bar")}},
		"updated, own bucket":     {operation: update, object: backupEntry("e", "foo", "b"), old: backupEntry("e", "foo", "old"), stored: []client.Object{bucket("b", "foo")}},
		"updated, another bucket": {operation: update, object: backupEntry("e", "foo", "b"), old: backupEntry("e", "foo", "old"), stored: []client.Object{bucket("b", "bar")}, want: 403},
		"updated, missing bucket": {operation: update, object: backupEntry("e", "foo", "b"), old: backupEntry("e", "foo", "old"), want: 403},
	}, seedUsers...)

	run(t, decide, bastions, map[string]test{
		"own":             {object: bastion(new("foo"))},
		"of another seed": {object: bastion(new("bar")), want: 403, names: "Bastion garden-dev/b"},
		"of no seed":      {object: bastion(nil), want: 403},
		"updated":         {operation: update, object: bastion(new("foo")), want: 400},
		"deleted":         {operation: remove, old: bastion(new("foo")), want: 400},
		"no Bastion":      {object: seed("b"), want: 400},
	}, seedUsers...)

	const group, foo = "gardener.cloud:system:seeds", "gardener.cloud:system:seed:foo"
	usages := func(usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
		csr := certificate(t, group, foo)
		csr.Spec.Usages = usages
		return csr
	}
	garbage := certificate(t, group, foo)
	garbage.Spec.Request = []byte("x")
	run(t, decide, certificateRequests, map[string]test{
		"own":                     {object: certificate(t, group, foo)},
		"of another seed":         {object: certificate(t, group, "gardener.cloud:system:seed:bar"), want: 403, names: "Seed bar"},
		"of another group":        {object: certificate(t, "system:masters", foo), want: 403},
		"of another user":         {object: certificate(t, group, "admin"), want: 403},
		"with an alternative DNS": {object: certificate(t, group, foo, func(r *x509.CertificateRequest) { r.DNSNames = []string{"x"} }), want: 403},
		"with an e-mail address":  {object: certificate(t, group, foo, func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"x@y"} }), want: 403},
		"for a server":            {object: usages("digital signature", "key encipherment", "server auth"), want: 403},
		"without usages":          {object: usages(), want: 403},
		"garbage":                 {object: garbage, want: 403},
		"of a self-hosted shoot":  {object: certificate(t, "gardener.cloud:system:shoots", "gardener.cloud:system:shoot:garden:foo"), want: 403},
		"no request":              {object: seed("b"), want: 400},
		"updated":                 {operation: update, object: certificate(t, group, foo), want: 400},
		"deleted":                 {operation: remove, old: certificate(t, group, foo), want: 400},
	}, seedGardenletUser)
	run(t, decide, certificateRequests, map[string]test{"of an extension": {object: certificate(t, group, foo), want: 403}}, seedExtensionUser)

	binding := func(name, role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("", name), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "garden", Name: "gardenlet-bootstrap-m"}},
		}
	}
	const bootstrapper = "gardener.cloud:system:seed-bootstrapper"
	of := binding(bootstrapper+":garden:gardenlet-bootstrap-m", bootstrapper)
	kind := of.DeepCopy()
	kind.RoleRef.Kind = "Role"
	other, more := of.DeepCopy(), of.DeepCopy()
	other.Subjects[0].Name = "mine"
	more.Subjects = append(more.Subjects, rbacv1.Subject{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "system:authenticated"})
	run(t, decide, clusterRoleBindings, map[string]test{
		"of another name":           {object: binding("admins", bootstrapper), want: 403},
		"of no ManagedSeed":         {object: binding(bootstrapper+":garden:x", bootstrapper), want: 403},
		"for another role":          {object: binding(of.Name, "cluster-admin"), want: 403, names: bootstrapper},
		"for another kind of role":  {object: kind, want: 403},
		"for another account":       {object: other, want: 403, names: "gardenlet-bootstrap-m"},
		"for more than its account": {object: more, want: 403, names: "gardenlet-bootstrap-m"},
		"no ClusterRoleBinding":     {object: seed(of.Name), want: 400},
		"updated":                   {operation: update, object: of, want: 400},
		"deleted":                   {operation: remove, old: of, want: 400},
		"without anything after it": {object: binding(bootstrapper+":", bootstrapper), want: 403},
	}, seedGardenletUser)
	run(t, decide, clusterRoleBindings, maySeedBootstrap(func() test { return test{object: of} }), seedGardenletUser)
	run(t, decide, clusterRoleBindings, map[string]test{"of an extension": {object: of, want: 403}}, seedExtensionUser)

	for resource, suffixes := range map[schema.GroupVersionResource][]string{
		configMaps: {"ca-cluster", "ca-kubelet"}, internalSecrets: {"ca-client"}, secrets: {"ca-cluster", "ssh-keypair", "ssh-keypair.old", "monitoring"},
	} {
		named := func(name string) client.Object {
			obj := New(resource.GroupResource())
			obj.SetNamespace(project)
			obj.SetName(name)
			return obj
		}
		for _, suffix := range suffixes {
			obj := named("s." + suffix)
			run(t, decide, resource, map[string]test{
				suffix + "/own":                 {object: obj, stored: []client.Object{shoot(project, "s", "foo")}},
				suffix + "/of another seed":     {object: obj, stored: []client.Object{shoot(project, "s", "bar")}, want: 403, names: "Shoot garden-dev/s"},
				suffix + "/of no seed":          {object: obj, stored: []client.Object{shoot(project, "s", "")}, want: 403},
				suffix + "/no Shoot":            {object: obj, want: 403, names: "does not exist"},
				suffix + "/in another project":  {object: obj, stored: []client.Object{shoot("garden-other", "s", "foo")}, want: 403},
				suffix + "/Shoot is unreadable": {object: obj, broken: "Shoot", want: 500},
				suffix + "/updated":             {operation: update, object: obj, want: 400},
				suffix + "/deleted":             {operation: remove, old: obj, want: 400},
			}, seedUsers...)
		}
		run(t, decide, resource, map[string]test{
			"another name":       {object: named("x"), stored: []client.Object{shoot(project, "x", "foo")}, want: 403},
			"another suffix":     {object: named("s.kubeconfig"), stored: []client.Object{shoot(project, "s", "foo")}, want: 403},
			"a name to be made":  {object: named(""), stored: []client.Object{shoot(project, "s", "foo")}, want: 403},
			"nothing in front":   {object: named("." + suffixes[0]), stored: []client.Object{shoot(project, "s", "foo")}, want: 403},
			"in another project": {object: named("s." + suffixes[0]), stored: []client.Object{shoot("garden-other", "s", "foo")}, want: 403},
		}, seedUsers...)
	}

	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: meta(namespace, name)}
	}
	run(t, decide, leases, map[string]test{
		"of the seed":             {object: lease("gardener-system-seed-lease", "foo")},
		"of another seed":         {object: lease("gardener-system-seed-lease", "bar"), want: 403},
		"for leader election":     {object: lease("garden", "gardenlet-leader-election")},
		"elsewhere":               {object: lease("kube-system", "foo"), want: 403},
		"in the namespace of it":  {object: lease("seed-foo", "x"), want: 403},
		"updated":                 {operation: update, object: lease("gardener-system-seed-lease", "foo"), want: 400},
		"deleted":                 {operation: remove, old: lease("gardener-system-seed-lease", "foo"), want: 400},
		"leader election with it": {object: lease("gardener-system-seed-lease", "gardenlet-leader-election")},
	}, seedGardenletUser)
	run(t, decide, leases, map[string]test{
		"in the namespace of the seed": {object: lease("seed-foo", "x")},
		"in that of another":           {object: lease("seed-bar", "x"), want: 403},
		"of the gardenlet":             {object: lease("gardener-system-seed-lease", "foo"), want: 403},
		"for leader election":          {object: lease("garden", "gardenlet-leader-election"), want: 403},
	}, seedExtensionUser)

	leaving := managedSeed("garden", "m", "s", deleted)
	run(t, decide, seeds, map[string]test{
		"own":                   {object: seed("foo")},
		"another":               {object: seed("bar"), want: 403, names: `Seed "bar"`},
		"own, updated":          {operation: update, object: seed("foo"), old: seed("foo")},
		"another, updated":      {operation: update, object: seed("bar"), old: seed("bar"), want: 403},
		"own, deleted":          {operation: remove, old: seed("foo"), want: 403, names: `Seed "foo"`},
		"another, deleted":      {operation: remove, old: seed("bar"), want: 403},
		"all deleted":           {operation: remove, want: 403},
		"of a ManagedSeed":      {operation: remove, old: seed("m"), stored: []client.Object{managedSeed("garden", "m", "s"), shoot("garden", "s", "foo")}, want: 403},
		"of one that leaves":    {operation: remove, old: seed("m"), stored: []client.Object{leaving, shoot("garden", "s", "foo")}},
		"of one without Shoot":  {operation: remove, old: seed("m"), stored: []client.Object{leaving}, want: 403},
		"of one elsewhere":      {operation: remove, old: seed("m"), stored: []client.Object{leaving, shoot("garden", "s", "bar")}, want: 403},
		"of one in a project":   {operation: remove, old: seed("m"), stored: []client.Object{managedSeed(project, "m", "s", deleted), shoot(project, "s", "foo")}, want: 403},
		"of an unreadable one":  {operation: remove, old: seed("m"), broken: "ManagedSeed", want: 500},
		"with unreadable Shoot": {operation: remove, old: seed("m"), stored: []client.Object{leaving}, broken: "Shoot", want: 500},
		"of one not for Shoots": {operation: remove, old: seed("m"), stored: []client.Object{managedSeed("garden", "m", "", deleted)}, want: 403},
	}, seedUsers...)

	internal := func(domain string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Domain: domain} }
	}
	byDefault := func(domain string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{Domain: domain}} }
	}
	ingress := func(domain string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.Ingress = &corev1beta1.Ingress{Domain: domain} }
	}
	config := &runtime.RawExtension{Raw: []byte(`{"seedConfig":{"spec":{"dns":{"internal":{"domain":"com"}}}}}`)}
	declaring := template(managedSeed("garden", "foo", "s"), string(config.Raw))
	operators := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo")}
	operators.Spec.Config = config
	run(t, decide, seeds, map[string]test{
		"the same domain":              {operation: update, object: seed("foo", internal("com")), old: seed("foo", internal("com"))},
		"a new internal domain":        {operation: update, object: seed("foo", internal("com")), old: seed("foo", internal("net")), want: 403, names: `"com"`},
		"a new default domain":         {operation: update, object: seed("foo", byDefault("com")), old: seed("foo"), want: 403, names: `"com"`},
		"a new domain for its ingress": {operation: update, object: seed("foo", ingress("com")), old: seed("foo"), want: 403, names: `"com"`},
		"that of its ManagedSeed":      {operation: update, object: seed("foo", internal("com")), old: seed("foo"), stored: []client.Object{declaring}},
		"that of its Gardenlet":        {operation: update, object: seed("foo", internal("com")), old: seed("foo"), stored: []client.Object{operators}},
		"that of another seed":         {operation: update, object: seed("foo", byDefault("com")), old: seed("foo"), stored: []client.Object{seed("bar", byDefault("com"))}},
		"another's, for another use":   {operation: update, object: seed("foo", byDefault("com")), old: seed("foo"), stored: []client.Object{seed("bar", internal("com"))}, want: 403, names: `"com"`},
		"its own, for another use":     {operation: update, object: seed("foo", ingress("com")), old: seed("foo", byDefault("com")), stored: []client.Object{seed("foo", byDefault("com"))}, want: 403, names: `"com"`},
		"the ingress of another seed":  {operation: update, object: seed("foo", ingress("com")), old: seed("foo"), stored: []client.Object{seed("bar", ingress("com"))}, want: 403, names: `"com"`},
		"another than its Gardenlet's": {object: seed("foo", internal("org")), stored: []client.Object{operators}, want: 403, names: `"org"`},
		"of unreadable seeds":          {operation: update, object: seed("foo", internal("com")), old: seed("foo"), broken: "Seed", want: 500},
	}, seedGardenletUser)
	run(t, decide, seeds, map[string]test{"its first one": {object: seed("foo", internal("com"))}}, seedGardenletUser)

	run(t, decide, managedSeeds, map[string]test{
		"a new domain":         {operation: update, object: declaring, old: managedSeed("garden", "foo", "s"), want: 403, names: `"com"`},
		"the same domain":      {operation: update, object: declaring, old: declaring},
		"that of another seed": {operation: update, object: declaring, old: managedSeed("garden", "foo", "s"), stored: []client.Object{seed("bar", internal("com"))}},
		"without the old one":  {operation: update, object: declaring, want: 400},
		"created":              {object: declaring, want: 400},
	}, seedUsers...)

	run(t, decide, serviceAccounts, map[string]test{
		"of the seed":       {object: account("seed-foo", "x")},
		"of another seed":   {object: account("seed-bar", "x"), want: 403},
		"in the garden":     {object: account("garden", "x"), want: 403},
		"that names tokens": {object: account("seed-foo", "x", "token"), want: 403, names: "token"},
		"deleted":           {operation: remove, old: account("seed-foo", "x"), want: 400},
	}, seedGardenletUser)
	run(t, decide, serviceAccounts, maySeedBootstrap(func() test { return test{object: account("garden", "gardenlet-bootstrap-m")} }), seedGardenletUser)
	run(t, decide, serviceAccounts, map[string]test{"of the seed": {object: account("seed-foo", "x"), want: 403}}, seedExtensionUser)
	run(t, decide, serviceAccounts, map[string]test{
		"updated":                  {operation: update, object: account("garden", "gardenlet-bootstrap-m", "t"), old: account("garden", "gardenlet-bootstrap-m", "t")},
		"updated with a new token": {operation: update, object: account("garden", "gardenlet-bootstrap-m", "t", "u"), old: account("garden", "gardenlet-bootstrap-m", "t"), want: 403, names: `"u"`},
	}, seedUsers...)

	state := &corev1beta1.ShootState{ObjectMeta: meta(project, "s")}
	responsible := func(bound, on string) *corev1beta1.Shoot {
		return shoot(project, "s", bound, func(s *corev1beta1.Shoot) {
			if s.Status.SeedName = nil; on != "" {
				s.Status.SeedName = &on
			}
		})
	}
	run(t, decide, shootStatuses, map[string]test{
		"takes over":                    {operation: update, object: responsible("foo", "foo"), old: responsible("foo", "")},
		"no change":                     {operation: update, object: responsible("bar", "bar"), old: responsible("bar", "bar")},
		"releases":                      {operation: update, object: responsible("bar", "bar"), old: responsible("bar", "foo")},
		"makes another one responsible": {operation: update, object: responsible("foo", "bar"), old: responsible("foo", ""), want: 403, names: "status.seedName"},
		"releases to a third one":       {operation: update, object: responsible("bar", "baz"), old: responsible("bar", "foo"), want: 403},
		"takes from another one":        {operation: update, object: responsible("bar", "foo"), old: responsible("bar", "bar"), want: 403},
	}, seedUsers...)
	run(t, decide, shootStates, map[string]test{
		"own":                 {object: state, stored: []client.Object{shoot(project, "s", "foo")}},
		"during a migration":  {object: state, stored: []client.Object{shoot(project, "s", "bar", func(s *corev1beta1.Shoot) { s.Status.SeedName = new("foo") })}},
		"of another seed":     {object: state, stored: []client.Object{shoot(project, "s", "bar")}, want: 403},
		"of no seed":          {object: state, stored: []client.Object{shoot(project, "s", "")}, want: 403},
		"no Shoot":            {object: state, want: 500},
		"Shoot is unreadable": {object: state, broken: "Shoot", want: 500},
		"updated":             {operation: update, object: state, want: 400},
		"deleted":             {operation: remove, old: state, want: 400},
	}, seedUsers...)
	run(t, decide, shoots, map[string]test{"unexpected": {object: shoot(project, "s", "foo"), want: 400, names: "shoots"}}, seedUsers...)
}

func TestSeedSecrets(t *testing.T) {
	decide := (*Values).Seed
	generated := secret("garden", "generated-bucket-b")
	run(t, decide, secrets, map[string]test{
		"generated/own":                  {object: generated, stored: []client.Object{bucket("b", "foo")}},
		"generated/of another seed":      {object: generated, stored: []client.Object{bucket("b", "bar")}, want: 403},
		"generated/of no seed":           {object: generated, stored: []client.Object{bucket("b", "")}, want: 403},
		"generated/no bucket":            {object: generated, want: 403},
		"generated/bucket is unreadable": {object: generated, broken: "BackupBucket", want: 500},
		"no Secret":                      {object: seed("s"), want: 400},
	}, seedUsers...)

	issuer := func(pairs ...string) *corev1.Secret {
		return secret("gardener-system-shoot-issuer", "dev--1", labelled(pairs...))
	}
	const name, namespace, public = "shoot.gardener.cloud/name", "shoot.gardener.cloud/namespace", "discovery.gardener.cloud/public"
	documents := issuer(name, "s", namespace, project, public, "serviceaccount")
	run(t, decide, secrets, map[string]test{
		"issuer/own":                  {object: documents, stored: []client.Object{shoot(project, "s", "foo")}},
		"issuer/of another seed":      {object: documents, stored: []client.Object{shoot(project, "s", "bar")}, want: 403},
		"issuer/no Shoot":             {object: documents, want: 403},
		"issuer/Shoot is unreadable":  {object: documents, broken: "Shoot", want: 500},
		"issuer/without a name":       {object: issuer(namespace, project, public, "serviceaccount"), want: 422, names: name},
		"issuer/without a namespace":  {object: issuer(name, "s", public, "serviceaccount"), want: 422, names: namespace},
		"issuer/not public":           {object: issuer(name, "s", namespace, project), want: 422, names: public},
		"issuer/public for something": {object: issuer(name, "s", namespace, project, public, "shoot-ca"), want: 422, names: public},
	}, seedUsers...)

	const authentication, signing = "usage-bootstrap-authentication", "usage-bootstrap-signing"
	own := bootstrapToken("Gardenlet", "garden/foo")
	self := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo")}
	renewedSelf := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo", renewed)}
	m := func(change ...func(*corev1.Secret)) *corev1.Secret {
		return bootstrapToken("ManagedSeed", "garden/m", change...)
	}
	run(t, decide, secrets, map[string]test{
		"token/of another type":           {object: m(func(s *corev1.Secret) { s.Type = "Opaque" }), want: 422, names: "type"},
		"token/not for authentication":    {object: m(without(authentication)), want: 422, names: authentication},
		"token/false for authentication":  {object: m(data(authentication, "false")), want: 422, names: authentication},
		"token/not for signing":           {object: m(without(signing)), want: 422, names: signing},
		"token/false for signing":         {object: m(data(signing, "false")), want: 422, names: signing},
		"token/with groups":               {object: m(data("auth-extra-groups", "system:bootstrappers:x")), want: 422, names: "auth-extra-groups"},
		"token/without a description":     {object: m(without("description")), want: 400, names: "description"},
		"token/with another description":  {object: m(data("description", "x")), want: 400},
		"token/for another kind":          {object: bootstrapToken("Seed", "garden/foo"), want: 400},
		"token/for nothing":               {object: bootstrapToken("ManagedSeed", ""), want: 400},
		"token/for a name only":           {object: bootstrapToken("ManagedSeed", "m"), want: 400},
		"token/Gardenlet of another seed": {object: bootstrapToken("Gardenlet", "garden/bar"), want: 403},
		// These would be taken for tokens of an operator.
		"token/Gardenlet in a project":      {object: bootstrapToken("Gardenlet", project+"/foo"), want: 400},
		"token/Gardenlet, no final dot":     {object: bootstrapToken("Gardenlet", "", data("description", gardenletOf+"garden/foo")), stored: []client.Object{self, seed("foo", expires(now.Add(-time.Minute)))}, want: 400},
		"token/ManagedSeed in a project":    {object: bootstrapToken("ManagedSeed", project+"/m"), stored: []client.Object{managedSeed(project, "m", "s"), shoot(project, "s", "foo")}, want: 400},
		"token/Gardenlet of a shoot":        {object: bootstrapToken("Gardenlet", "garden/self-hosted-shoot-foo"), want: 403},
		"token/no Gardenlet":                {object: own, stored: []client.Object{seed("foo")}, want: 403},
		"token/unreadable Gardenlet":        {object: own, broken: "Gardenlet", want: 500},
		"token/no Seed":                     {object: own, stored: []client.Object{self}, want: 403},
		"token/unreadable Seed":             {object: own, stored: []client.Object{self}, broken: "Seed", want: 500},
		"token/bootstrapped":                {object: own, stored: []client.Object{self, seed("foo")}, want: 400, names: "already"},
		"token/with a valid certificate":    {object: own, stored: []client.Object{self, seed("foo", expires(now.Add(time.Minute)))}, want: 400},
		"token/with an expired certificate": {object: own, stored: []client.Object{self, seed("foo", expires(now.Add(-time.Minute)))}},
		"token/to be renewed":               {object: own, stored: []client.Object{renewedSelf, seed("foo")}},
	}, seedGardenletUser)
	run(t, decide, secrets, map[string]test{"token/own": {object: own, stored: []client.Object{renewedSelf, seed("foo")}, want: 403}}, seedExtensionUser)
	run(t, decide, secrets, maySeedBootstrap(func() test { return test{object: m()} }), seedGardenletUser)

	const config = `{"seedConfig": {"spec": {"backup": {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"}}}}}`
	backup := secret("garden", "backup")
	of := func(shoot, config string) *seedmanagementv1alpha1.ManagedSeed {
		return template(managedSeed("garden", "m-"+shoot, shoot), config)
	}
	identity := strings.NewReplacer(`"v1"`, `"security.gardener.cloud/v1alpha1"`, `"Secret"`, `"WorkloadIdentity"`).Replace(config)
	run(t, decide, secrets, map[string]test{
		"backup/own":                            {object: backup, stored: []client.Object{of("s", config), shoot("garden", "s", "foo")}},
		"backup/of another seed":                {object: backup, stored: []client.Object{of("s", config), shoot("garden", "s", "bar")}, want: 403},
		"backup/of a WorkloadIdentity":          {object: backup, stored: []client.Object{of("s", identity), shoot("garden", "s", "foo")}, want: 403},
		"backup/of another name":                {object: secret("garden", "other"), stored: []client.Object{of("s", config), shoot("garden", "s", "foo")}, want: 403},
		"backup/in another namespace":           {object: secret(project, "backup"), stored: []client.Object{of("s", config), shoot("garden", "s", "foo")}, want: 403},
		"backup/no ManagedSeed":                 {object: backup, want: 403},
		"backup/of no Shoot":                    {object: backup, stored: []client.Object{of("s", config)}, want: 403},
		"backup/without backups":                {object: backup, stored: []client.Object{of("s", `{"seedConfig": {"spec": {}}}`), shoot("garden", "s", "foo")}, want: 403},
		"backup/of an unreadable configuration": {object: backup, stored: []client.Object{of("s", `[]`), shoot("garden", "s", "foo")}, want: 403},
		"backup/ManagedSeeds are unreadable":    {object: backup, broken: "ManagedSeed", want: 500},
		// Others must not be in the way.
		"backup/beside an unreadable one": {object: backup, stored: []client.Object{of("a", `[]`), of("b", config), of("s", config), shoot("garden", "s", "foo")}},
	}, seedUsers...)
	run(t, decide, secrets, map[string]test{
		"in the garden":                                     {object: secret("garden", "x", labelled("gardener.cloud/role", "global-monitoring")), want: 403},
		"in the namespace of another seed":                  {object: secret("seed-bar", "x"), want: 403},
		"of a BackupBucket, in a namespace of another seed": {object: secret("seed-bar", "generated-bucket-b"), stored: []client.Object{bucket("b", "foo")}, want: 403},
		"a token outside of its namespace":                  {object: secret("garden", "bootstrap-token-abcdef"), want: 403},
		"something else in the kube-system":                 {object: secret("kube-system", "x"), want: 403},
		"something else in a project":                       {object: secret(project, "x"), want: 403},
		"something that is known by its UID":                {object: secret("garden", "uid-of-foo"), want: 403},
		"credentials in the namespace of seed":              {object: secret("seed-foo", "x"), want: 403},
	}, seedUsers...)
}

// What exists is not created again.
func TestSeedKnown(t *testing.T) {
	for _, u := range seedUsers {
		v := values(t, "")
		v.Exists = func(context.Context, *Request) bool { return true }
		r := &Request{User: u, Operation: create, Resource: secrets.GroupResource(), Namespace: "garden", Name: "x", Object: secret("garden", "x")}
		check(t, v.Seed(t.Context(), r), 409, "garden/x")
		r.Operation = admissionv1.Update
		check(t, v.Seed(t.Context(), r), 400, "")
	}
}

// Only clients are restricted.
func TestOthers(t *testing.T) {
	for _, u := range []user.Info{someUser, oddUser, shootGardenletUser, shootExtensionUser, gardenadmUser} {
		check(t, values(t, "").Seed(t.Context(), &Request{User: u, Operation: create, Resource: seeds.GroupResource(), Name: "bar", Object: seed("bar")}), 0, "")
	}
	for _, u := range []user.Info{someUser, oddUser, seedGardenletUser, seedExtensionUser} {
		check(t, values(t, "").Shoot(t.Context(), &Request{User: u, Operation: create, Resource: secrets.GroupResource(), Name: "x", Object: secret("garden", "x")}), 0, "")
	}
}
