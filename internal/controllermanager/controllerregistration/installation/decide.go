package installation

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Labels of ControllerInstallations with hashes of the referenced objects when spec was last written. The references contain resource
// versions, which change with every heartbeat; the hashes do not.
const (
	labelSeedHash         = "seed-spec-hash"
	labelShootHash        = "shoot-spec-hash"
	labelRegistrationHash = "registration-spec-hash"
	labelDeploymentHash   = "deployment-hash"
)

// maxNamePrefix is how many characters of a registration's name are in the name of an installation. The gardenlet creates a namespace
// "extension-<installation>", whose name may have 63 characters.
const maxNamePrefix = 63 - len("extension-") - 1 - hashLength

const hashLength = 8

// observed is the input of the decision about the installations of a cluster.
type observed struct {
	// seed or shoot is the cluster.
	seed  *corev1beta1.Seed
	shoot *corev1beta1.Shoot
	// needs are the extension resources of the cluster.
	needs needs
	// shoots is how many shoots the cluster hosts.
	shoots int
	// registrations are all ControllerRegistrations.
	registrations []corev1beta1.ControllerRegistration
	// installations are those of the cluster.
	installations []corev1beta1.ControllerInstallation
	// deployments are the ControllerDeployments that registrations refer to, by name.
	deployments map[string]deployment
}

// deployment is the content of an installation that depends on its ControllerDeployment.
type deployment struct {
	resourceVersion, hash string
	// resources are the objects in the garden that it refers to.
	resources []corev1.ObjectReference
}

// plan is the list of changes of the installations of a cluster.
type plan struct {
	create []*corev1beta1.ControllerInstallation
	// update has the current installations and the desired ones.
	update [][2]*corev1beta1.ControllerInstallation
	remove []*corev1beta1.ControllerInstallation
	// unserved are needs that no registration serves.
	unserved []need
}

// decide compares the installations of a cluster with its needs.
func decide(o observed) plan {
	var p plan
	needed, unserved := neededRegistrations(o)
	p.unserved = unserved

	installed := map[string]*corev1beta1.ControllerInstallation{}
	for _, installation := range sortedByAge(o.installations) {
		name := installation.Spec.RegistrationRef.Name
		if _, ok := needed[name]; !ok || installed[name] != nil {
			if installation.DeletionTimestamp == nil {
				p.remove = append(p.remove, installation)
			}
			continue
		}
		installed[name] = installation
	}
	for i := range o.registrations {
		registration := &o.registrations[i]
		if _, ok := needed[registration.Name]; !ok {
			continue
		}
		// A registration in deletion gets no further installation, so that another one can take over. Its installation stays until it is not
		// needed any more, or a user deletes it.
		if registration.DeletionTimestamp != nil {
			continue
		}
		before := installed[registration.Name]
		if before == nil {
			p.create = append(p.create, desired(o, registration, nil))
			continue
		}
		if after := desired(o, registration, before); before.DeletionTimestamp == nil && !same(before, after) {
			p.update = append(p.update, [2]*corev1beta1.ControllerInstallation{before, after})
		}
	}
	return p
}

// neededRegistrations returns the names of the registrations that a cluster needs, and the needs that no registration serves.
func neededRegistrations(o observed) (sets.Set[string], []need) {
	var cluster metav1.Object = o.seed
	if o.seed == nil {
		cluster = o.shoot
	}
	needed, served := sets.New[string](), sets.New[need]()
	for i := range o.registrations {
		registration := &o.registrations[i]
		isNeeded := false
		for _, resource := range registration.Spec.Resources {
			if n := (need{resource.Kind, resource.Type}); o.needs.Has(n) {
				isNeeded = true
				served.Insert(n)
			}
		}
		if d := registration.Spec.Deployment; d != nil {
			switch policy := d.Policy; {
			case policy == nil:
			case *policy == corev1beta1.ControllerDeploymentPolicyAlways:
				isNeeded = isNeeded || cluster.GetDeletionTimestamp() == nil
			case *policy == corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots:
				isNeeded = isNeeded || o.shoots > 0
			}
			isNeeded = isNeeded && selects(d.SeedSelector, cluster.GetLabels())
		}
		if isNeeded {
			needed.Insert(registration.Name)
		}
	}
	// Without their controller, extension resources in the cluster would never be deleted.
	for i := range o.installations {
		if required(&o.installations[i]) {
			needed.Insert(o.installations[i].Spec.RegistrationRef.Name)
		}
	}
	unserved := o.needs.Difference(served).UnsortedList()
	slices.SortFunc(unserved, func(a, b need) int { return strings.Compare(a.String(), b.String()) })
	return needed, unserved
}

// selects reports whether a selector, which the API server has validated, matches. A nil selector matches everything.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

// desired returns the desired installation of a registration in a cluster: a new one, or an updated copy of the current one.
func desired(
	o observed, registration *corev1beta1.ControllerRegistration, before *corev1beta1.ControllerInstallation,
) *corev1beta1.ControllerInstallation {
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: nameFor(registration.Name, o.clusterKey())}}
	if before != nil {
		installation = before.DeepCopy()
	}
	if installation.Labels == nil {
		installation.Labels = map[string]string{}
	}
	if installation.Annotations == nil {
		installation.Annotations = map[string]string{}
	}
	spec := &installation.Spec
	refer(installation, labelRegistrationHash, &spec.RegistrationRef, corev1.ObjectReference{
		Name: registration.Name, ResourceVersion: registration.ResourceVersion,
	}, hashOf(registration))
	if o.seed != nil {
		if spec.SeedRef == nil {
			spec.SeedRef = &corev1.ObjectReference{}
		}
		refer(installation, labelSeedHash, spec.SeedRef, corev1.ObjectReference{
			Name: o.seed.Name, ResourceVersion: o.seed.ResourceVersion,
		}, hashOf(o.seed))
	} else {
		if spec.ShootRef == nil {
			spec.ShootRef = &corev1.ObjectReference{}
		}
		refer(installation, labelShootHash, spec.ShootRef, corev1.ObjectReference{
			Namespace: o.shoot.Namespace, Name: o.shoot.Name, ResourceVersion: o.shoot.ResourceVersion,
		}, hashOf(o.shoot))
	}

	spec.ResourceRefs = nil
	deploymentName, found := "", false
	var d deployment
	if registration.Spec.Deployment != nil && len(registration.Spec.Deployment.DeploymentRefs) > 0 {
		deploymentName = registration.Spec.Deployment.DeploymentRefs[0].Name
		d, found = o.deployments[deploymentName]
	}
	if deploymentName == "" {
		spec.DeploymentRef = nil
		delete(installation.Labels, labelDeploymentHash)
	} else {
		if spec.DeploymentRef == nil {
			spec.DeploymentRef = &corev1.ObjectReference{}
		}
		refer(installation, labelDeploymentHash, spec.DeploymentRef, corev1.ObjectReference{
			Name: deploymentName, ResourceVersion: d.resourceVersion,
		}, d.hash)
		if !found {
			delete(installation.Labels, labelDeploymentHash)
		}
		spec.ResourceRefs = d.resources
	}

	if level, ok := registration.Annotations[constants.PodSecurityEnforce]; ok {
		installation.Annotations[constants.PodSecurityEnforce] = level
	} else {
		delete(installation.Annotations, constants.PodSecurityEnforce)
	}
	return installation
}

// refer writes a reference, if the object has another name or another hash than when it was last written.
func refer(
	installation *corev1beta1.ControllerInstallation, label string, ref *corev1.ObjectReference, desired corev1.ObjectReference, hash string,
) {
	if installation.Labels[label] == hash && ref.Name == desired.Name && ref.Namespace == desired.Namespace && ref.ResourceVersion != "" {
		return
	}
	*ref = desired
	installation.Labels[label] = hash
}

// same reports whether two versions of an installation have the same fields that this controller writes.
func same(a, b *corev1beta1.ControllerInstallation) bool {
	return apiequality.Semantic.DeepEqual(a.Spec, b.Spec) && apiequality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}

// clusterKey identifies the cluster among Seeds and Shoots.
func (o observed) clusterKey() string {
	if o.seed != nil {
		return "Seed/" + o.seed.Name
	}
	return "Shoot/" + o.shoot.Namespace + "/" + o.shoot.Name
}

// nameFor returns the name of the installation of a registration in a cluster. It is always the same one, so that a stale cache
// cannot lead to a second installation.
func nameFor(registration, cluster string) string {
	prefix := registration
	if len(prefix) > maxNamePrefix {
		prefix = strings.TrimRight(prefix[:maxNamePrefix], "-.")
	}
	return prefix + "-" + hash(registration, cluster)
}

// hashOf changes when the spec of an object changes. Generations count such changes, so that large objects need not be read.
func hashOf(obj metav1.Object) string {
	return hash(string(obj.GetUID()), fmt.Sprint(obj.GetGeneration()))
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashLength]
}

// sortedByAge returns installations from the oldest to the youngest.
func sortedByAge(installations []corev1beta1.ControllerInstallation) []*corev1beta1.ControllerInstallation {
	sorted := make([]*corev1beta1.ControllerInstallation, len(installations))
	for i := range installations {
		sorted[i] = &installations[i]
	}
	slices.SortFunc(sorted, func(a, b *corev1beta1.ControllerInstallation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return sorted
}
