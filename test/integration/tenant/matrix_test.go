package tenant

import (
	"strings"
	"testing"
)

// roles are the columns of the matrix: the roles that a member of a Project can have.
var roles = []string{"owner", "admin", "viewer", "uam", "serviceaccountmanager", "extension:widgets"}

// matrix says what the members of a Project may do. It is written from the documents, resource by resource: "admin" manages everything in the
// namespace but ServiceAccounts, which it only reads, and bindings make it manage what they may do; "viewer" reads all but Secrets; "uam" manages
// users and groups in spec.members; "serviceaccountmanager" manages ServiceAccounts and requests their tokens; the owner has the roles of
// admin, uam and serviceaccountmanager; an extension role has what extensions add to it. Whatever is served and has no row is for none of them.
//
// r: get, list, watch; w: create, update, patch, delete, deletecollection; g: get; c: create; u: update, patch; d: delete;
// m: manage-members; "." is nothing.
const matrix = `
# in the namespace of the Project                owner  admin  viewer  uam  sam  ext
configmaps                                       rw     rw     r       .    .    .
events                                           rcu    rcu    r       .    .    .
events.events.k8s.io                             r      r      r       .    .    .
resourcequotas                                   r      r      r       .    .    .
secrets                                          rw     rw     .       .    .    .
serviceaccounts                                  rw     r      r       .    rw   .
serviceaccounts/token                            c      .      .       .    c    .
rolebindings.rbac.authorization.k8s.io           rw     rw     r       .    .    .
roles.rbac.authorization.k8s.io                  rw     rw     r       .    .    .
namespacedcloudprofiles.core.gardener.cloud      rw     rw     r       .    .    .
plants.core.gardener.cloud                       rw     rw     r       .    .    .
quotas.core.gardener.cloud                       rw     rw     r       .    .    .
secretbindings.core.gardener.cloud               rw     rw     r       .    .    .
shoots.core.gardener.cloud                       rw     rw     r       .    .    .
shoots/adminkubeconfig.core.gardener.cloud       c      c      .       .    .    .
shoots/viewerkubeconfig.core.gardener.cloud      c      c      c       .    .    .
credentialsbindings.security.gardener.cloud      rw     rw     r       .    .    .
workloadidentities.security.gardener.cloud       rw     rw     r       .    .    .
bastions.operations.gardener.cloud               rw     rw     r       .    .    .
openidconnectpresets.settings.gardener.cloud     rw     rw     r       .    .    .
widgets.example.com                              .      .      .       .    .    rw

# the Project itself, and its Namespace
projects.core.gardener.cloud:own                 gudm   gud    g       gum  .    .
namespaces:own                                   g      g      g       .    .    .

# in the whole garden, for all authenticated users
cloudprofiles.core.gardener.cloud:all            r      r      r       r    r    r
controllerregistrations.core.gardener.cloud:all  r      r      r       r    r    r
exposureclasses.core.gardener.cloud:all          r      r      r       r    r    r
seeds.core.gardener.cloud:all                    r      r      r       r    r    r
clusteropenidconnectpresets.settings.gardener.cloud:all r r    r       r    r    r
customresourcedefinitions.apiextensions.k8s.io:all r    r      r       r    r    r
tokenreviews.authentication.k8s.io:all           c      c      c       c    c    c
selfsubjectreviews.authentication.k8s.io:all     c      c      c       c    c    c
selfsubjectaccessreviews.authorization.k8s.io:all c     c      c       c    c    c
selfsubjectrulesreviews.authorization.k8s.io:all c      c      c       c    c    c
`

// The scopes of the matrix.
const (
	inNamespace = ""    // objects in the namespace of the Project
	own         = "own" // cluster-scoped objects of the Project
	everywhere  = "all" // cluster-scoped objects
)

// letters are the verbs in the matrix.
var letters = map[rune][]string{
	'r': {"get", "list", "watch"}, 'w': {"create", "update", "patch", "delete", "deletecollection"},
	'g': {"get"}, 'c': {"create"}, 'u': {"update", "patch"}, 'd': {"delete"}, 'm': {"manage-members"}, '.': nil,
}

// cell is a place in the matrix.
type cell struct{ role, resource, scope, verb string }

// expected are the cells of the matrix.
func expected(t *testing.T) map[cell]bool {
	t.Helper()
	cells := map[cell]bool{}
	for line := range strings.Lines(matrix) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != len(roles)+1 {
			t.Fatalf("%q has %d fields", line, len(fields))
		}
		resource, scope, _ := strings.Cut(fields[0], ":")
		for i, role := range roles {
			for _, letter := range fields[i+1] {
				verbs, ok := letters[letter]
				if !ok {
					t.Fatalf("%q: unknown letter %c", line, letter)
				}
				for _, verb := range verbs {
					cells[cell{role, resource, scope, verb}] = true
				}
			}
		}
	}
	return cells
}
