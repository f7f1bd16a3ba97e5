package restriction

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

var shootUsers = []user.Info{shootGardenletUser, shootExtensionUser}

func TestShoot(t *testing.T) {
	decide := (*Values).Shoot
	run(t, decide, backupBuckets, map[string]test{
		"own":             {object: shootBucket("uid-of-mine", "mine")},
		"of another":      {object: shootBucket("b", "other"), want: 403, names: "garden-dev/mine"},
		"with its name":   {object: shootBucket("uid-of-other", "mine"), want: 403, names: `"uid-of-mine"`},
		"of a seed":       {object: bucket("b", "mine"), want: 403},
		"no BackupBucket": {object: seed("b"), want: 400},
		"updated":         {operation: update, object: shootBucket("b", "mine"), want: 400},
		"deleted":         {operation: remove, old: shootBucket("b", "mine"), want: 400},
	}, shootUsers...)
	own := backupEntry("e", "", "b", ofShoot("mine"))
	run(t, decide, backupEntries, map[string]test{
		"own":                            {object: own, stored: []client.Object{shootBucket("b", "mine")}},
		"of another":                     {object: backupEntry("e", "", "b", ofShoot("other")), stored: []client.Object{shootBucket("b", "mine")}, want: 403},
		"of a seed":                      {object: backupEntry("e", "mine", "b"), stored: []client.Object{shootBucket("b", "mine")}, want: 403},
		"in the bucket of another":       {object: own, stored: []client.Object{shootBucket("b", "other")}, want: 403},
		"in the bucket of a seed":        {object: own, stored: []client.Object{bucket("b", "foo")}, want: 403},
		"in a bucket that is missing":    {object: own, want: 403},
		"in a bucket that is unreadable": {object: own, broken: "BackupBucket", want: 500},
		"no BackupEntry":                 {object: seed("e"), want: 400},
		"deleted":                        {operation: remove, old: own, want: 400},
		"updated, same bucket":           {operation: update, object: own, old: own, stored: []client.Object{shootBucket("b", "other")}},
		"updated, own bucket":            {operation: update, object: own, old: backupEntry("e", "", "a", ofShoot("mine")), stored: []client.Object{shootBucket("b", "mine")}},
		"updated, another bucket":        {operation: update, object: own, old: backupEntry("e", "", "a", ofShoot("mine")), stored: []client.Object{shootBucket("b", "other")}, want: 403},
	}, shootUsers...)

	for resource, suffixes := range map[schema.GroupVersionResource][]string{
		configMaps: {"ca-cluster", "ca-kubelet"}, internalSecrets: {"ca-client"}, secrets: {"ca-cluster", "ssh-keypair", "ssh-keypair.old", "monitoring"},
	} {
		named := func(namespace, name string) client.Object {
			obj := New(resource.GroupResource())
			obj.SetNamespace(namespace)
			obj.SetName(name)
			return obj
		}
		for _, suffix := range suffixes {
			run(t, decide, resource, map[string]test{
				suffix + "/own":                  {object: named(project, "mine."+suffix)},
				suffix + "/of another":           {object: named(project, "other."+suffix), want: 403},
				suffix + "/in another namespace": {object: named("garden", "mine."+suffix), want: 403},
				suffix + "/updated":              {operation: update, object: named(project, "mine."+suffix), want: 400},
				suffix + "/deleted":              {operation: remove, old: named(project, "mine."+suffix), want: 400},
			}, shootUsers...)
		}
		run(t, decide, resource, map[string]test{
			"another suffix": {object: named(project, "mine.kubeconfig"), want: 403},
			"another name":   {object: named(project, "x"), want: 403},
		}, shootUsers...)
	}

	generated := secret("garden", "generated-bucket-b")
	token := func(kind, of string) client.Object { return bootstrapToken(kind, of) }
	run(t, decide, secrets, map[string]test{
		"generated/own":                      {object: generated, stored: []client.Object{shootBucket("b", "mine")}},
		"generated/of another":               {object: generated, stored: []client.Object{shootBucket("b", "other")}, want: 403},
		"generated/of a seed":                {object: generated, stored: []client.Object{bucket("b", "foo")}, want: 403},
		"generated/no bucket":                {object: generated, want: 403},
		"generated/bucket is unreadable":     {object: generated, broken: "BackupBucket", want: 500},
		"token/in another namespace":         {object: secret(project, "bootstrap-token-abcdef"), want: 403},
		"in the garden with a role":          {object: secret("garden", "x", labelled("gardener.cloud/role", "global-monitoring")), want: 403},
		"generated/in a namespace of a seed": {object: secret("seed-foo", "generated-bucket-b"), stored: []client.Object{shootBucket("b", "mine")}, want: 403},
		"no Secret":                          {object: seed("x"), want: 400},
	}, shootUsers...)
	run(t, decide, secrets, map[string]test{
		"token/own": {object: token("Gardenlet", project+"/self-hosted-shoot-mine"), want: 403},
	}, shootExtensionUser)
	run(t, decide, secrets, map[string]test{
		"token/of a hosted shoot":      {object: token("Gardenlet", project+"/self-hosted-shoot-mine"), stored: []client.Object{shoot(project, "mine", "foo")}, want: 403, names: "not self-hosted"},
		"token/ManagedSeed of another": {object: token("ManagedSeed", "garden/m"), stored: []client.Object{managedSeed("garden", "m", "mine")}, want: 403},
		"token/ManagedSeed of none":    {object: token("ManagedSeed", "garden/m"), stored: []client.Object{managedSeed("garden", "m", "")}, want: 403},
		"token/no ManagedSeed":         {object: token("ManagedSeed", "garden/m"), want: 403},
		"token/unreadable ManagedSeed": {object: token("ManagedSeed", "garden/m"), broken: "ManagedSeed", want: 500},
		// It would be taken for a token of an operator.
		"token/ManagedSeed elsewhere": {object: token("ManagedSeed", project+"/m"), stored: []client.Object{managedSeed(project, "m", "mine")}, want: 400, names: "description"},
		"token/no final dot":          {object: bootstrapToken("Gardenlet", "", data("description", gardenletOf+project+"/self-hosted-shoot-mine")), want: 400},
		"token/Gardenlet of no shoot": {object: token("Gardenlet", project+"/mine"), want: 400},
		"token/Gardenlet of a seed":   {object: token("Gardenlet", "garden/mine"), want: 403},
		"token/of gardenadm":          {object: bootstrapToken("Gardenlet", "", data("description", "Used for connecting the self-hosted Shoot garden-dev/mine to Gardener via 'gardenadm connect'")), want: 400},
		"token/with groups":           {object: bootstrapToken("Gardenlet", project+"/self-hosted-shoot-mine", data("auth-extra-groups", "system:bootstrappers:x")), want: 422, names: "auth-extra-groups"},
		"token/of another type":       {object: bootstrapToken("Gardenlet", project+"/self-hosted-shoot-mine", func(s *corev1.Secret) { s.Type = "Opaque" }), want: 422},
		"token/Gardenlet":             {object: token("Gardenlet", project+"/self-hosted-shoot-mine")},
		"token/Gardenlet of another":  {object: token("Gardenlet", project+"/self-hosted-shoot-other"), want: 403},
		"token/Gardenlet elsewhere":   {object: token("Gardenlet", "garden/self-hosted-shoot-mine"), want: 403},
		"token/without a description": {object: bootstrapToken("Gardenlet", "x", without("description")), want: 400},
	}, shootGardenletUser)
	// ManagedSeeds are in the namespace garden only, so are their shoots.
	inGarden := &user.DefaultInfo{Name: "gardener.cloud:system:shoot:garden:mine", Groups: []string{"gardener.cloud:system:shoots"}}
	run(t, decide, secrets, map[string]test{
		"token/ManagedSeed":            {object: token("ManagedSeed", "garden/m"), stored: []client.Object{managedSeed("garden", "m", "mine"), shoot("garden", "mine", "", selfHosted)}},
		"token/ManagedSeed of another": {object: token("ManagedSeed", "garden/m"), stored: []client.Object{managedSeed("garden", "m", "other"), shoot("garden", "mine", "", selfHosted)}, want: 403},
		"token/Gardenlet":              {object: token("Gardenlet", "garden/self-hosted-shoot-mine"), stored: []client.Object{shoot("garden", "mine", "", selfHosted)}},
		// Of the seed "mine", which is another gardenlet.
		"token/Gardenlet of a seed": {object: token("Gardenlet", "garden/mine"), stored: []client.Object{shoot("garden", "mine", "", selfHosted)}, want: 403, names: "garden/mine"},
	}, inGarden)
	run(t, decide, projects, map[string]test{"unexpected": {object: &corev1beta1.Project{ObjectMeta: meta("", "dev")}, want: 400, names: "projects"}}, shootUsers...)
	run(t, decide, shoots, map[string]test{"unexpected": {object: shoot(project, "mine", ""), want: 400, names: "shoots"}}, shootUsers...)

	const shootsGroup, mine = "gardener.cloud:system:shoots", "gardener.cloud:system:shoot:garden-dev:mine"
	run(t, decide, certificateRequests, map[string]test{
		"own":        {object: certificate(t, shootsGroup, mine)},
		"of another": {object: certificate(t, shootsGroup, "gardener.cloud:system:shoot:garden-dev:other"), want: 403},
		"gardenadm":  {object: certificate(t, shootsGroup, "gardener.cloud:gardenadm:shoot:garden-dev:mine"), want: 403},
		"of a seed":  {object: certificate(t, "gardener.cloud:system:seeds", "gardener.cloud:system:seed:mine"), want: 403},
		"updated":    {operation: update, object: certificate(t, shootsGroup, mine), want: 400},
	}, shootGardenletUser)
	run(t, decide, certificateRequests, map[string]test{"own": {object: certificate(t, shootsGroup, mine), want: 403}}, shootExtensionUser)

	gardenlet := func(namespace, name string) client.Object {
		return &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta(namespace, name)}
	}
	run(t, decide, gardenlets, map[string]test{
		"own":                  {object: gardenlet(project, "self-hosted-shoot-mine")},
		"of another":           {object: gardenlet(project, "self-hosted-shoot-other"), want: 403},
		"of a seed":            {object: gardenlet(project, "mine"), want: 400},
		"in another namespace": {object: gardenlet("garden", "self-hosted-shoot-mine"), want: 403},
		"updated":              {operation: update, object: gardenlet(project, "self-hosted-shoot-mine"), want: 400},
	}, shootUsers...)

	lease := func(namespace, name string) client.Object {
		return &coordinationv1.Lease{ObjectMeta: meta(namespace, name)}
	}
	run(t, decide, leases, map[string]test{
		"own":                  {object: lease(project, "self-hosted-shoot-mine")},
		"of another":           {object: lease(project, "self-hosted-shoot-other"), want: 403},
		"without prefix":       {object: lease(project, "mine"), want: 400},
		"in another namespace": {object: lease("garden", "self-hosted-shoot-mine"), want: 403},
		"updated":              {operation: update, object: lease(project, "self-hosted-shoot-mine"), want: 400},
	}, shootGardenletUser)
	run(t, decide, leases, map[string]test{
		"own":                  {object: lease(project, "mine--e")},
		"of another":           {object: lease(project, "other--e"), want: 403},
		"of the gardenlet":     {object: lease(project, "self-hosted-shoot-mine"), want: 403},
		"in another namespace": {object: lease("garden", "mine--e"), want: 403},
	}, shootExtensionUser)

	run(t, decide, managedSeeds, map[string]test{
		"own":                 {operation: update, object: managedSeed(project, "m", "mine"), old: managedSeed(project, "m", "mine")},
		"of another":          {operation: update, object: managedSeed(project, "m", "mine"), old: managedSeed(project, "m", "other"), want: 403},
		"of none":             {operation: update, object: managedSeed(project, "m", "mine"), old: managedSeed(project, "m", ""), want: 403},
		"without the old one": {operation: update, object: managedSeed(project, "m", "mine"), want: 400},
		"created":             {object: managedSeed(project, "m", "mine"), want: 400},
		"with a new domain":   {operation: update, object: template(managedSeed(project, "m", "mine"), `{"seedConfig":{"spec":{"dns":{"internal":{"domain":"com"}}}}}`), old: managedSeed(project, "m", "mine"), want: 403, names: `"com"`},
	}, shootUsers...)

	run(t, decide, serviceAccounts, map[string]test{
		"own":                  {object: account(project, "extension-shoot--mine--e")},
		"of another":           {object: account(project, "extension-shoot--other--e"), want: 403},
		"of no shoot":          {object: account(project, "x"), want: 403},
		"in another namespace": {object: account("garden", "extension-shoot--mine--e"), want: 403},
		"that names tokens":    {object: account(project, "extension-shoot--mine--e", "token"), want: 403, names: "token"},
		"deleted":              {operation: remove, old: account(project, "extension-shoot--mine--e"), want: 400},
	}, shootGardenletUser)
	run(t, decide, serviceAccounts, map[string]test{"own": {object: account(project, "extension-shoot--mine--e"), want: 403}}, shootExtensionUser)
	run(t, decide, serviceAccounts, map[string]test{
		"updated":                  {operation: update, object: account(project, "x"), old: account(project, "x")},
		"updated with a new token": {operation: update, object: account(project, "x", "t"), old: account(project, "x"), want: 403},
	}, shootUsers...)

	state := func(namespace, name string) client.Object {
		return &corev1beta1.ShootState{ObjectMeta: meta(namespace, name)}
	}
	run(t, decide, shootStates, map[string]test{
		"own":                  {object: state(project, "mine")},
		"of another":           {object: state(project, "other"), want: 403},
		"in another namespace": {object: state("garden", "mine"), want: 403},
		"updated":              {operation: update, object: state(project, "mine"), want: 400},
	}, shootUsers...)
}

func TestGardenadm(t *testing.T) {
	decide := (*Values).Shoot
	for _, resource := range []schema.GroupVersionResource{configMaps, secrets, workloadIdentities} {
		named := func(namespace string) client.Object {
			obj := New(resource.GroupResource())
			obj.SetNamespace(namespace)
			obj.SetName("x")
			return obj
		}
		run(t, decide, resource, map[string]test{
			"own":        {object: named(project)},
			"of another": {object: named("garden"), want: 403},
			"updated":    {operation: update, object: named(project), want: 400},
			"deleted":    {operation: remove, old: named(project), want: 400},
		}, gardenadmUser)
	}
	in := func(namespace *string) client.Object {
		return &corev1beta1.Project{ObjectMeta: meta("", "dev"), Spec: corev1beta1.ProjectSpec{Namespace: namespace}}
	}
	run(t, decide, projects, map[string]test{
		"own":          {object: in(new(project))},
		"of another":   {object: in(new("garden-other")), want: 403},
		"of none":      {object: in(nil), want: 403},
		"no Project":   {object: seed("dev"), want: 400},
		"own, updated": {operation: update, object: in(new(project)), want: 400},
	}, gardenadmUser)
	run(t, decide, shoots, map[string]test{
		"own":                  {object: shoot(project, "mine", "")},
		"of another":           {object: shoot(project, "other", ""), want: 403},
		"in another namespace": {object: shoot("garden", "mine", ""), want: 403},
		"own, deleted":         {operation: remove, old: shoot(project, "mine", ""), want: 400},
	}, gardenadmUser)
	for resource, obj := range map[schema.GroupVersionResource]client.Object{
		backupBuckets: shootBucket("b", "mine"), backupEntries: backupEntry("e", "", "b", ofShoot("mine")),
		internalSecrets: &corev1beta1.InternalSecret{ObjectMeta: meta(project, "mine.ca-client")}, gardenlets: &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta(project, "self-hosted-shoot-mine")},
		certificateRequests: certificate(t, "gardener.cloud:system:shoots", "gardener.cloud:system:shoot:garden-dev:mine"),
		serviceAccounts:     account(project, "extension-shoot--mine--e"), shootStates: &corev1beta1.ShootState{ObjectMeta: meta(project, "mine")},
		leases: &coordinationv1.Lease{ObjectMeta: meta(project, "mine--e")}, managedSeeds: managedSeed(project, "m", "mine"),
	} {
		run(t, decide, resource, map[string]test{"unexpected": {object: obj, want: 400}}, gardenadmUser)
	}
}
