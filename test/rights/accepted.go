package rights

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Class is a set of names that are one, as the differences come from chance or from users: namespaces of shoots are an example.
type Class struct {
	// Pattern is a regular expression for a part of a name.
	Pattern string `json:"pattern"`
	// Name replaces it.
	Name string `json:"name"`

	expression *regexp.Regexp
}

// Classes are applied one after the other.
type Classes []Class

func (c Classes) of(name string) string {
	for _, class := range c {
		name = class.expression.ReplaceAllString(name, class.Name)
	}
	return name
}

func (c Classes) identity(i Identity) Identity {
	return Identity{Kind: i.Kind, Name: c.of(i.Name)}
}

// Reason accepts findings. In all patterns, * stands for any text; a pattern that is missing matches everything.
type Reason struct {
	// Identities are patterns such as "ServiceAccount kube-system/*".
	Identities []string `json:"identities"`
	// Roles are patterns such as "ClusterRole gardener.cloud:*".
	Roles []string `json:"roles,omitempty"`
	// Verbs are patterns of verbs.
	Verbs []string `json:"verbs,omitempty"`
	// Objects are patterns of resources or paths, such as "deployments.apps/scale".
	Objects []string `json:"objects,omitempty"`
	// Reason says why. It is required.
	Reason string `json:"reason"`
}

// Accepted are the findings that have a reason.
type Accepted struct {
	// Classes are names that are one.
	Classes Classes `json:"classes,omitempty"`
	// UserAgents are patterns of the user agents of attempts, whose requests do not count.
	UserAgents []string `json:"userAgents,omitempty"`
	// Unused are rights that stay, though no test uses them.
	Unused []Reason `json:"unused,omitempty"`
	// Refused are requests that are refused rightly.
	Refused []Reason `json:"refused,omitempty"`
	// Wildcards are rules that cannot name what they grant.
	Wildcards []Reason `json:"wildcards,omitempty"`
}

// ParseAccepted reads a file of reasons.
func ParseAccepted(data []byte) (*Accepted, error) {
	accepted := &Accepted{}
	if err := yaml.UnmarshalStrict(data, accepted); err != nil {
		return nil, err
	}
	for i := range accepted.Classes {
		class := &accepted.Classes[i]
		var err error
		if class.expression, err = regexp.Compile(class.Pattern); err != nil {
			return nil, fmt.Errorf("classes[%d].pattern: %w", i, err)
		}
	}
	for kind, reasons := range accepted.byKind() {
		for i, reason := range reasons {
			if strings.TrimSpace(reason.Reason) == "" || len(reason.Identities) == 0 {
				return nil, fmt.Errorf("%s[%d]: identities and reason are required", kind, i)
			}
		}
	}
	return accepted, nil
}

func (a *Accepted) byKind() map[Kind][]Reason {
	return map[Kind][]Reason{Unused: a.Unused, Refused: a.Refused, Wildcard: a.Wildcards}
}

// Filter returns the findings without a reason, and the reasons without a finding.
func (a *Accepted) Filter(findings []Finding) (left []Finding, idle []string) {
	byKind, used := a.byKind(), map[Kind]map[int]bool{Unused: {}, Refused: {}, Wildcard: {}}
	for _, finding := range findings {
		accepted := false
		for i, reason := range byKind[finding.Kind] {
			if reason.matches(finding) {
				accepted, used[finding.Kind][i] = true, true
			}
		}
		if !accepted {
			left = append(left, finding)
		}
	}
	for _, kind := range []Kind{Unused, Refused, Wildcard} {
		for i, reason := range byKind[kind] {
			if !used[kind][i] {
				idle = append(idle, fmt.Sprintf("%s: %s: %s", kind, strings.Join(reason.Identities, ", "), reason.Reason))
			}
		}
	}
	return left, idle
}

func (r Reason) matches(f Finding) bool {
	return matches(r.Identities, f.Identity.String()) && matches(r.Roles, f.Role) && matches(r.Verbs, f.Verb) && matches(r.Objects, f.Object)
}

func matches(patterns []string, text string) bool {
	for _, pattern := range patterns {
		expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		if regexp.MustCompile(expression).MatchString(text) {
			return true
		}
	}
	return len(patterns) == 0
}
