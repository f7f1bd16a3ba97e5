package authorizer

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"gardener.cloud/gardener/internal/authorizer/graph"
)

// fakeLive is a garden in which some objects exist that the graph does not know.
type fakeLive struct {
	exist  []types.NamespacedName
	tokens map[string]types.NamespacedName
	err    error
}

func (f fakeLive) Exists(_ context.Context, _, _ string, name types.NamespacedName) (bool, error) {
	for _, n := range f.exist {
		if n == name {
			return true, f.err
		}
	}
	return false, f.err
}

func (f fakeLive) ShootOfBootstrapToken(_ context.Context, secret string) (types.NamespacedName, error) {
	return f.tokens[secret], f.err
}

var (
	gardenletFoo = &user.DefaultInfo{Name: "gardener.cloud:system:seed:foo", Groups: []string{"gardener.cloud:system:seeds"}}
	extensionFoo = &user.DefaultInfo{Name: "system:serviceaccount:seed-foo:extension-e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-foo"}}
	gardenletX   = &user.DefaultInfo{Name: "gardener.cloud:system:shoot:garden-a:x", Groups: []string{"gardener.cloud:system:shoots"}}
	gardenadmX   = &user.DefaultInfo{Name: "gardener.cloud:gardenadm:shoot:garden-a:x", Groups: []string{"gardener.cloud:system:shoots"}}
	hosted       = &user.DefaultInfo{Name: "system:serviceaccount:garden-a:extension-shoot--mine--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-a"}}
	promoted     = &user.DefaultInfo{Name: "system:serviceaccount:garden:extension-shoot--foo--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden"}}
)

func attributes(u user.Info, verb, group, resource, namespace, name string, change ...func(*kauthorizer.AttributesRecord)) kauthorizer.Attributes {
	a := kauthorizer.AttributesRecord{User: u, Verb: verb, APIGroup: group, Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true}
	for _, c := range change {
		c(&a)
	}
	return a
}

func subresource(name string) func(*kauthorizer.AttributesRecord) {
	return func(a *kauthorizer.AttributesRecord) { a.Subresource = name }
}

func labelSelector(text string) func(*kauthorizer.AttributesRecord) {
	return func(a *kauthorizer.AttributesRecord) {
		selector, err := labels.Parse(text)
		if err != nil {
			panic(err)
		}
		a.LabelSelectorRequirements, _ = selector.Requirements()
	}
}

func fieldSelector(text string) func(*kauthorizer.AttributesRecord) {
	return func(a *kauthorizer.AttributesRecord) {
		a.FieldSelectorRequirements = fields.ParseSelectorOrDie(text).Requirements()
	}
}

func TestAuthorize(t *testing.T) {
	g := graph.New(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	foo, bar := graph.Key{Kind: graph.Seed, Name: "foo"}, graph.Key{Kind: graph.Seed, Name: "bar"}
	for _, obj := range []graph.Object{
		{Key: foo},
		{Key: bar},
		shootOn("mine", foo), shootOn("theirs", bar),
		selfHosted("garden-a", "x"), selfHosted("garden", "foo"),
		{Key: graph.Key{Kind: graph.Gardenlet, Namespace: "garden", Name: "foo"}, Edges: []graph.Edge{
			{From: graph.Key{Kind: graph.Gardenlet, Namespace: "garden", Name: "foo"}, To: foo, Scope: graph.Seeds},
		}},
	} {
		g.Set(obj)
	}
	complete := true
	values := Values{Graph: g, Complete: func() bool { return complete }, Live: fakeLive{
		exist:  []types.NamespacedName{{Namespace: "garden-a", Name: "alive"}},
		tokens: map[string]types.NamespacedName{"bootstrap-token-mine00": {Namespace: "garden-a", Name: "x"}, "bootstrap-token-theirs": {Namespace: "garden-b", Name: "x"}},
	}}
	seeds := NewSeeds(values)
	shoots := NewShoots(values, seeds)
	const mine, garden, system = "name.seed.gardener.cloud/foo", "garden", "kube-system"
	for name, tc := range map[string]struct {
		authorizer kauthorizer.Authorizer
		request    kauthorizer.Attributes
		incomplete bool
		want       bool
	}{
		"Shoot on the seed":       {seeds, attributes(gardenletFoo, "get", coreGroup, "shoots", "garden-a", "mine"), false, true},
		"Shoot on another seed":   {seeds, attributes(gardenletFoo, "get", coreGroup, "shoots", "garden-a", "theirs"), false, false},
		"before all is known":     {seeds, attributes(gardenletFoo, "get", coreGroup, "shoots", "garden-a", "mine"), true, false},
		"by an extension":         {seeds, attributes(extensionFoo, "get", coreGroup, "shoots", "garden-a", "mine"), false, true},
		"no resource":             {seeds, kauthorizer.AttributesRecord{User: gardenletFoo, Verb: "get", Path: "/healthz"}, false, false},
		"kubeconfig of its Shoot": {seeds, attributes(gardenletFoo, "create", coreGroup, "shoots", "garden-a", "mine", subresource("adminkubeconfig")), false, false},

		"Shoots, by label":                    {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector(mine+"=true")), false, true},
		"Shoots, by label in one value":       {seeds, attributes(gardenletFoo, "watch", coreGroup, "shoots", "", "", labelSelector(mine+" in (true)")), false, true},
		"Shoots, by label and more":           {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector(mine+"=true,a!=b")), false, true},
		"Shoots":                              {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", ""), false, false},
		"Shoots, by label of another seed":    {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector("name.seed.gardener.cloud/bar=true")), false, false},
		"Shoots, by label in two values":      {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector(mine+" in (true,false)")), false, false},
		"Shoots without another label":        {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector("x!=y")), false, false},
		"Shoots without a label":              {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector("!"+mine)), false, false},
		"Shoots that have the label":          {seeds, attributes(gardenletFoo, "list", coreGroup, "shoots", "", "", labelSelector(mine)), false, false},
		"Bastions, by field":                  {seeds, attributes(gardenletFoo, "list", operationsGroup, "bastions", "", "", fieldSelector("spec.seedName=foo")), false, true},
		"Bastions, by field of another":       {seeds, attributes(gardenletFoo, "list", operationsGroup, "bastions", "", "", fieldSelector("spec.seedName=bar")), false, false},
		"Bastions, by field not another":      {seeds, attributes(gardenletFoo, "list", operationsGroup, "bastions", "", "", fieldSelector("spec.seedName!=bar")), false, false},
		"BackupBuckets of a shoot":            {shoots, attributes(gardenletX, "list", coreGroup, "backupbuckets", "", "", fieldSelector("spec.shootRef.name=x,spec.shootRef.namespace=garden-a")), false, true},
		"BackupBuckets of a project":          {shoots, attributes(gardenletX, "list", coreGroup, "backupbuckets", "", "", fieldSelector("spec.shootRef.namespace=garden-a")), false, false},
		"BackupBuckets of equally named ones": {shoots, attributes(gardenletX, "list", coreGroup, "backupbuckets", "", "", fieldSelector("spec.shootRef.name=x")), false, false},
		"issuer Secrets":                      {shoots, attributes(gardenletX, "list", "", "secrets", garden, "", labelSelector("gardener.cloud/role=shoot-service-account-issuer")), false, true},
		"Secrets of the garden":               {shoots, attributes(gardenletX, "list", "", "secrets", garden, "", labelSelector("x!=y")), false, false},
		"Secrets of the seed":                 {seeds, attributes(gardenletFoo, "watch", "", "secrets", "seed-foo", ""), false, true},
		"Secrets of another seed":             {seeds, attributes(gardenletFoo, "watch", "", "secrets", "seed-bar", ""), false, false},

		"delete what does not exist":     {seeds, attributes(gardenletFoo, "delete", "", "secrets", "garden-a", "gone"), false, true},
		"delete what nothing refers to":  {seeds, attributes(gardenletFoo, "delete", "", "secrets", "garden-a", "alive"), false, false},
		"delete what others refer to":    {seeds, attributes(gardenletFoo, "delete", "", "secrets", "garden-a", "theirs.ca-cluster"), false, false},
		"delete its own":                 {seeds, attributes(gardenletFoo, "delete", "", "secrets", "garden-a", "mine.ca-cluster"), false, true},
		"token of its ServiceAccount":    {seeds, attributes(gardenletFoo, "create", "", "serviceaccounts", "seed-foo", "extension-e", subresource("token")), false, true},
		"token of a ServiceAccount":      {seeds, attributes(gardenletFoo, "create", "", "serviceaccounts", "seed-bar", "extension-e", subresource("token")), false, false},
		"Lease of an extension":          {seeds, attributes(extensionFoo, "update", leaseGroup, "leases", "seed-foo", "e"), false, true},
		"Lease of another seed":          {seeds, attributes(extensionFoo, "update", leaseGroup, "leases", "seed-bar", "e"), false, false},
		"Lease of the gardenlet":         {seeds, attributes(gardenletFoo, "update", leaseGroup, "leases", "gardener-system-seed-lease", "foo"), false, true},
		"gardener-info":                  {seeds, attributes(gardenletFoo, "get", "", "configmaps", "gardener-system-public", "gardener-info"), false, true},
		"create a Gardenlet":             {seeds, attributes(gardenletFoo, "create", seedManagementGroup, "gardenlets", garden, ""), false, true},
		"its Gardenlet":                  {seeds, attributes(gardenletFoo, "patch", seedManagementGroup, "gardenlets", garden, "foo"), false, true},
		"extension creates a Gardenlet":  {seeds, attributes(extensionFoo, "create", seedManagementGroup, "gardenlets", garden, ""), false, false},
		"extension, Gardenlet":           {seeds, attributes(extensionFoo, "patch", seedManagementGroup, "gardenlets", garden, "foo"), false, false},
		"extension, status of Gardenlet": {seeds, attributes(extensionFoo, "patch", seedManagementGroup, "gardenlets", garden, "foo", subresource("status")), false, false},
		"extension reads its Gardenlet":  {seeds, attributes(extensionFoo, "get", seedManagementGroup, "gardenlets", garden, "foo"), false, true},
		"own bootstrap token":            {seeds, attributes(gardenletFoo, "delete", "", "secrets", system, graph.BootstrapTokenName("garden", "foo")), false, true},
		"own bootstrap ServiceAccount":   {seeds, attributes(gardenletFoo, "delete", "", "serviceaccounts", garden, "gardenlet-bootstrap-foo"), false, true},
		"other bootstrap ServiceAccount": {seeds, attributes(gardenletFoo, "delete", "", "serviceaccounts", garden, "gardenlet-bootstrap-bar"), false, false},
		"bind the role to bootstrap":     {seeds, attributes(gardenletFoo, "bind", rbacGroup, "clusterroles", "", "gardener.cloud:system:seed-bootstrapper"), false, true},
		"bind another role":              {seeds, attributes(gardenletFoo, "bind", rbacGroup, "clusterroles", "", "cluster-admin"), false, false},
		"read the role to bootstrap":     {seeds, attributes(gardenletFoo, "get", rbacGroup, "clusterroles", "", "gardener.cloud:system:seed-bootstrapper"), false, false},
		"ShootState":                     {seeds, attributes(gardenletFoo, "patch", coreGroup, "shootstates", "garden-a", "mine"), false, true},
		"extension reads a ShootState":   {seeds, attributes(extensionFoo, "get", coreGroup, "shootstates", "garden-a", "mine"), false, true},
		"extension, ShootState":          {seeds, attributes(extensionFoo, "patch", coreGroup, "shootstates", "garden-a", "mine"), false, false},
		"extension adds a ShootState":    {seeds, attributes(extensionFoo, "create", coreGroup, "shootstates", "garden-a", "mine"), false, false},
		"extension binds it":             {seeds, attributes(extensionFoo, "bind", rbacGroup, "clusterroles", "", "gardener.cloud:system:seed-bootstrapper"), false, false},
		"token to bootstrap another":     {seeds, attributes(gardenletFoo, "create", "", "serviceaccounts", garden, "gardenlet-bootstrap-bar", subresource("token")), false, false},
		"own bootstrap binding":          {seeds, attributes(gardenletFoo, "delete", rbacGroup, "clusterrolebindings", "", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-foo"), false, true},
		"short bootstrap binding":        {seeds, attributes(gardenletFoo, "delete", rbacGroup, "clusterrolebindings", "", "gardener.cloud:system:seed-bootstrapper:garden:foo"), false, true},
		"Shoot of the name of the seed":  {seeds, attributes(gardenletFoo, "get", coreGroup, "shoots", garden, "foo"), false, true},
		"its status by name of the seed": {seeds, attributes(gardenletFoo, "get", coreGroup, "shoots", garden, "foo", subresource("status")), false, false},

		"own bootstrap token, shoot":             {shoots, attributes(gardenletX, "delete", "", "secrets", system, "bootstrap-token-mine00"), false, true},
		"other bootstrap token, shoot":           {shoots, attributes(gardenletX, "delete", "", "secrets", system, "bootstrap-token-theirs"), false, false},
		"read own bootstrap token":               {shoots, attributes(gardenletX, "get", "", "secrets", system, graph.BootstrapTokenName("garden-a", "x")), false, true},
		"read another bootstrap token":           {shoots, attributes(gardenletX, "get", "", "secrets", system, "bootstrap-token-theirs"), false, false},
		"its ServiceAccount":                     {shoots, attributes(gardenletX, "delete", "", "serviceaccounts", "garden-a", "extension-shoot--x--e"), false, true},
		"ServiceAccount of another":              {shoots, attributes(gardenletX, "delete", "", "serviceaccounts", "garden-a", "extension-shoot--y--e"), false, false},
		"own Shoot":                              {shoots, attributes(gardenletX, "watch", coreGroup, "shoots", "garden-a", "x"), false, true},
		"extension of a Shoot that is on a seed": {shoots, attributes(hosted, "watch", coreGroup, "shoots", "garden-a", "mine"), false, false},
		"another Shoot":                          {shoots, attributes(gardenletX, "watch", coreGroup, "shoots", "garden-a", "mine"), false, false},

		"extension of a shoot that is a seed":         {shoots, attributes(promoted, "get", coreGroup, "shoots", "garden-a", "mine"), false, true},
		"the same, by label":                          {shoots, attributes(promoted, "list", coreGroup, "shoots", "", "", labelSelector(mine+"=true")), false, true},
		"extension of a shoot that is a seed, others": {shoots, attributes(promoted, "get", coreGroup, "shoots", "garden-a", "theirs"), false, false},

		"gardenadm creates its Shoot":               {shoots, attributes(gardenadmX, "create", coreGroup, "shoots", "garden-a", ""), false, true},
		"gardenadm patches its Shoot":               {shoots, attributes(gardenadmX, "patch", coreGroup, "shoots", "garden-a", "x"), false, true},
		"gardenadm patches the status of its Shoot": {shoots, attributes(gardenadmX, "patch", coreGroup, "shoots", "garden-a", "x", subresource("status")), false, true},
		"gardenadm patches another Shoot":           {shoots, attributes(gardenadmX, "patch", coreGroup, "shoots", "garden-a", "mine"), false, false},
		"gardenadm patches the status of another":   {shoots, attributes(gardenadmX, "patch", coreGroup, "shoots", "garden-a", "mine", subresource("status")), false, false},
		"gardenadm gets a kubeconfig":               {shoots, attributes(gardenadmX, "create", coreGroup, "shoots", "garden-a", "mine", subresource("adminkubeconfig")), false, false},
		"gardenadm gets a token":                    {shoots, attributes(gardenadmX, "create", securityGroup, "workloadidentities", "garden-a", "w", subresource("token")), false, false},
		"gardenadm creates a Secret":                {shoots, attributes(gardenadmX, "create", "", "secrets", "garden-a", ""), false, true},
		"gardenadm creates a Secret elsewhere":      {shoots, attributes(gardenadmX, "create", "", "secrets", "garden-b", ""), false, false},
		"gardenadm reads a Secret":                  {shoots, attributes(gardenadmX, "get", "", "secrets", "garden-a", "s"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			complete = !tc.incomplete
			decision, reason, err := tc.authorizer.Authorize(t.Context(), tc.request)
			if err != nil || decision == kauthorizer.DecisionDeny || (decision == kauthorizer.DecisionAllow) != tc.want {
				t.Errorf("decision %d, reason %q, error %v; want allowed %t", decision, reason, err, tc.want)
			}
		})
	}
}

func selfHosted(namespace, name string) graph.Object {
	return graph.Object{Key: graph.Key{Kind: graph.Shoot, Namespace: namespace, Name: name}, SelfHosted: true}
}

func shootOn(name string, seed graph.Key) graph.Object {
	key := graph.Key{Kind: graph.Shoot, Namespace: "garden-a", Name: name}
	return graph.Object{Key: key, Edges: []graph.Edge{{From: key, To: seed}}}
}

func TestAuthorizeWithoutTheGarden(t *testing.T) {
	unreachable := errors.New("no connection")
	values := Values{Graph: graph.New(clocktesting.NewFakePassiveClock(time.Unix(0, 0))), Complete: func() bool { return true }, Live: fakeLive{err: unreachable}}
	values.Graph.Set(selfHosted("garden-a", "x"))
	for name, request := range map[string]kauthorizer.Attributes{
		"does it exist": attributes(gardenletX, "delete", "", "secrets", "garden-a", "gone"),
		"whose token":   attributes(gardenletX, "delete", "", "secrets", "kube-system", "bootstrap-token-123456"),
	} {
		t.Run(name, func(t *testing.T) {
			decision, _, err := NewShoots(values, NewSeeds(values)).Authorize(t.Context(), request)
			if decision != kauthorizer.DecisionNoOpinion || !errors.Is(err, unreachable) {
				t.Errorf("decision %d, error %v; want no opinion and the cause", decision, err)
			}
		})
	}
}
