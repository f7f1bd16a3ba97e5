package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The names of expanders.
const (
	LeastWaste = "least-waste"
	MostPods   = "most-pods"
	LeastNodes = "least-nodes"
	Priority   = "priority"
	Random     = "random"
)

// Expander chooses among options.
type Expander struct {
	// Names are the rules, applied in this order as long as more than one option is left. A random one of the rest is taken.
	Names []string
	// Priorities are those of groups, for Priority.
	Priorities Priorities
	// Intn returns a random number below n.
	Intn func(n int) int
}

// CheckExpanders returns an error if there is no expander of a name, or if one occurs twice.
func CheckExpanders(names []string) error {
	for i, name := range names {
		if !slices.Contains([]string{LeastWaste, MostPods, LeastNodes, Priority, Random}, name) {
			return fmt.Errorf("unknown expander %q", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("expander %q occurs twice", name)
		}
	}
	return nil
}

// Best returns the best of at least one option.
func (e Expander) Best(options []*Option) *Option {
	for _, name := range e.Names {
		if len(options) == 1 {
			break
		}
		switch name {
		case LeastWaste:
			options = best(options, func(o *Option) float64 { return -waste(o) })
		case MostPods:
			options = best(options, func(o *Option) float64 { return float64(len(o.Pods)) })
		case LeastNodes:
			options = best(options, func(o *Option) float64 { return -float64(len(o.Nodes)) })
		case Priority:
			options = best(options, func(o *Option) float64 { return float64(e.Priorities.of(o)) })
		case Random:
			return options[e.Intn(len(options))]
		}
	}
	if len(options) == 1 {
		return options[0]
	}
	return options[e.Intn(len(options))]
}

// best returns the options with the highest score.
func best(options []*Option, score func(*Option) float64) []*Option {
	var out []*Option
	highest := math.Inf(-1)
	for _, o := range options {
		switch s := score(o); {
		case s > highest:
			highest, out = s, []*Option{o}
		case s == highest:
			out = append(out, o)
		}
	}
	return out
}

// waste is the part of CPU and memory of new nodes that pods do not request.
func waste(o *Option) float64 {
	sum := 0.0
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		available, requested := 0.0, 0.0
		for _, node := range o.Nodes {
			available += quantityOf(node.Node, name)
		}
		for _, pod := range o.Pods {
			quantity := requests(pod)[name]
			requested += quantity.AsApproximateFloat64()
		}
		if available > 0 {
			sum += 1 - requested/available
		}
	}
	return sum / 2
}

// Priorities are the groups of each priority. A higher number is better, and a group that is in none has the priority 0.
type Priorities map[int][]*regexp.Regexp

// ParsePriorities reads the key "priorities" of the ConfigMap. Entries are regular expressions that match a whole name: otherwise, that of the
// first zone would match those of the tenth and further ones too.
func ParsePriorities(text string) (Priorities, error) {
	raw := map[string][]string{}
	if err := yaml.UnmarshalStrict([]byte(text), &raw); err != nil {
		return nil, err
	}
	out := Priorities{}
	for key, entries := range raw {
		priority, err := strconv.Atoi(key)
		if err != nil {
			return nil, fmt.Errorf("priority %q is not a number", key)
		}
		for _, entry := range entries {
			expression, err := regexp.Compile("^(?:" + entry + ")$")
			if err != nil {
				return nil, fmt.Errorf("priority %d: %w", priority, err)
			}
			out[priority] = append(out[priority], expression)
		}
	}
	return out, nil
}

// of returns the highest priority of the groups that an option lets grow.
func (p Priorities) of(o *Option) int {
	highest, found := 0, false
	for priority, expressions := range p {
		for _, g := range o.Groups {
			if o.Increases[g.Name] > 0 && (!found || priority > highest) &&
				slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(g.Name) }) {
				highest, found = priority, true
			}
		}
	}
	return highest
}
