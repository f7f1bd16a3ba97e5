// Package rights compares what the identities of a cluster may do with what they did, according to the audit log of its kube-apiserver. A right
// that was not used, a request that was refused, and a rule with a wildcard are findings, unless a reason is on file.
package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind is what is wrong.
type Kind string

const (
	// Unused is a right that was granted and not used.
	Unused Kind = "granted and not used"
	// Refused is a request that was refused: it was tried and not granted.
	Refused Kind = "tried and not granted"
	// Wildcard is a rule that grants what it does not name.
	Wildcard Kind = "wildcard"
)

// Finding is a difference between what an identity may do and what it did.
type Finding struct {
	Kind     Kind
	Identity Identity
	// Role is where it comes from. A refused request has none.
	Role string
	// Verb and Object are the right. The object is a resource as kubectl writes it, such as "deployments.apps/scale", or a path.
	Verb, Object string
}

// Report returns findings for a reader: what is wrong with an identity and a role as a heading, and a line per object below. They are sorted.
func Report(findings []Finding) string {
	var out strings.Builder
	var last Finding
	for _, f := range findings {
		heading, object := Finding{Kind: f.Kind, Identity: f.Identity, Role: f.Role}, f.Object
		if last.Object != "" && heading == (Finding{Kind: last.Kind, Identity: last.Identity, Role: last.Role}) {
			if last.Object == object {
				out.WriteString(" " + f.Verb)
			} else {
				fmt.Fprintf(&out, "\n  %s: %s", object, f.Verb)
			}
		} else {
			if last.Object != "" {
				out.WriteString("\n")
			}
			fmt.Fprintf(&out, "%s: %s", f.Kind, f.Identity)
			if f.Role != "" {
				fmt.Fprintf(&out, " (%s)", f.Role)
			}
			fmt.Fprintf(&out, "\n  %s: %s", object, f.Verb)
		}
		last = f
	}
	if last.Object != "" {
		out.WriteString("\n")
	}
	return out.String()
}

// Compare returns all findings, sorted. Names are replaced by the names of their class, so that what was used in one namespace of a class was used
// in all.
func Compare(rbac RBAC, usage *Usage, classes Classes) []Finding {
	byIdentity := map[Identity]map[Request]bool{}
	record := func(identity Identity, request Request) {
		if byIdentity[identity] == nil {
			byIdentity[identity] = map[Request]bool{}
		}
		byIdentity[identity][request] = true
	}
	findings := map[Finding]bool{}
	for use := range usage.uses {
		identity := classes.identity(identityOf(use.user))
		if granted := use; use.refused {
			granted.refused = false
			if usage.uses[granted] { // the role came a moment later, or the object went a moment before
				continue
			}
			findings[Finding{Kind: Refused, Identity: identity, Verb: use.Verb, Object: objectOf(right{
				apiGroup: use.APIGroup, resource: use.Resource, path: use.Path,
			})}] = true
			continue
		}
		request := use.Request
		request.Namespace = classes.of(request.Namespace)
		record(identity, request)
		for _, group := range usage.groups[use.user] {
			record(classes.identity(Identity{Kind: "Group", Name: group}), request)
		}
	}
	unused := map[Finding]bool{}
	for _, grant := range rbac.grants() {
		identity, role, namespace := classes.identity(grant.identity), classes.of(grant.role), classes.of(grant.namespace)
		wild := hasWildcard(grant.rule)
		for _, right := range rights(grant.rule) {
			finding := Finding{Kind: Unused, Identity: identity, Role: role, Verb: right.verb, Object: objectOf(right)}
			used := false
			for request := range byIdentity[identity] {
				if (namespace == "" || namespace == request.Namespace) && right.justifiedBy(request, grant.rule.ResourceNames) {
					used = true
					break
				}
			}
			// It is used if it is in one of the roles of a class.
			if previous, known := unused[finding]; !known || previous {
				unused[finding] = !used
			}
			if wild {
				finding.Kind = Wildcard
				findings[finding] = true
			}
		}
	}
	for finding, is := range unused {
		if is {
			findings[finding] = true
		}
	}
	all := make([]Finding, 0, len(findings))
	for finding := range findings {
		all = append(all, finding)
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Identity.String(), b.Identity.String()), cmp.Compare(a.Role, b.Role),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Verb, b.Verb))
	})
	return all
}

// objectOf is a resource as kubectl writes it, or a path.
func objectOf(r right) string {
	if r.resource == "" {
		return r.path
	}
	resource, subresource, _ := strings.Cut(r.resource, "/")
	if r.apiGroup != "" {
		resource += "." + r.apiGroup
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}
