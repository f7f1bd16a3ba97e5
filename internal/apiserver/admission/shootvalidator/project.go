package shootvalidator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// maxNames is how long the names of project and shoot may be together: they are part of namespaces and host names.
const maxNames = 21

// checkProject checks that a new shoot is possible in its project.
func checkProject(in *input) error {
	if !in.isNew {
		return nil
	}
	if in.project.DeletionTimestamp != nil {
		return fmt.Errorf("project %q is being deleted, so it accepts no new shoots", in.project.Name)
	}
	if len(in.project.Name)+len(in.shoot.Name) > maxNames {
		return field.Invalid(field.NewPath("metadata", "name"), in.shoot.Name,
			fmt.Sprintf("must not have more than %d characters together with the name of the project, %s", maxNames, in.project.Name))
	}
	return nil
}

// checkDeletion checks that a shoot can be deleted now.
func checkDeletion(shoot *corev1beta1.Shoot) error {
	if shoot.MovesToOtherSeed() {
		last := shoot.Status.LastOperation
		return fmt.Errorf("shoot %q cannot be deleted during the operation %s, which is %s", shoot.Name, last.Type, last.State)
	}
	return nil
}

// checkHibernation refuses to hibernate a cluster that could not be woken up again.
func checkHibernation(in *input) error {
	if in.old.HibernationWanted() || !in.shoot.HibernationWanted() {
		return nil
	}
	for _, constraint := range in.shoot.Status.Constraints {
		if constraint.Type == corev1beta1.ShootHibernationPossible && constraint.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("the shoot cannot be hibernated: %s", constraint.Message)
		}
	}
	return nil
}
