package authorization

import (
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributesOf returns the request that a review is about.
func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec) authorizer.AttributesRecord {
	extra := make(map[string][]string, len(spec.Extra))
	for key, values := range spec.Extra {
		extra[key] = values
	}
	record := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: extra}}
	if a := spec.NonResourceAttributes; a != nil {
		record.Verb, record.Path = a.Verb, a.Path
	}
	if a := spec.ResourceAttributes; a != nil {
		record.ResourceRequest = true
		record.Verb, record.Namespace, record.Name = a.Verb, a.Namespace, a.Name
		record.APIGroup, record.APIVersion, record.Resource, record.Subresource = a.Group, a.Version, a.Resource, a.Subresource
		record.FieldSelectorRequirements, record.FieldSelectorParsingErr = fieldRequirements(a.FieldSelector)
		record.LabelSelectorRequirements, record.LabelSelectorParsingErr = labelRequirements(a.LabelSelector)
	}
	return record
}

// fieldRequirements returns the requirements that can be expressed. Others limit a list further, so that it is safe to leave them out.
func fieldRequirements(attributes *authorizationv1.FieldSelectorAttributes) (requirements fields.Requirements, err error) {
	if attributes == nil {
		return nil, nil
	}
	if attributes.RawSelector != "" {
		var selector fields.Selector
		if selector, err = fields.ParseSelector(attributes.RawSelector); err == nil {
			requirements = selector.Requirements()
		}
	}
	if len(attributes.Requirements) == 0 {
		return requirements, err
	}
	requirements, err = nil, nil
	for _, r := range attributes.Requirements {
		operator, known := map[metav1.FieldSelectorOperator]selection.Operator{
			metav1.FieldSelectorOpIn: selection.Equals, metav1.FieldSelectorOpNotIn: selection.NotEquals,
		}[r.Operator]
		if !known || len(r.Values) != 1 {
			err = errors.Join(err, fmt.Errorf("field %q: operator %s with %d values is not supported", r.Key, r.Operator, len(r.Values)))
			continue
		}
		requirements = append(requirements, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return requirements, err
}

// labelRequirements returns the requirements that are valid, as fieldRequirements does.
func labelRequirements(attributes *authorizationv1.LabelSelectorAttributes) (requirements labels.Requirements, err error) {
	if attributes == nil {
		return nil, nil
	}
	if attributes.RawSelector != "" {
		requirements, err = labels.ParseToRequirements(attributes.RawSelector)
	}
	if len(attributes.Requirements) == 0 {
		return requirements, err
	}
	requirements, err = nil, nil
	for _, r := range attributes.Requirements {
		operator, known := map[metav1.LabelSelectorOperator]selection.Operator{
			metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
			metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
		}[r.Operator]
		if !known {
			err = errors.Join(err, fmt.Errorf("label %q: operator %s is not supported", r.Key, r.Operator))
			continue
		}
		requirement, invalid := labels.NewRequirement(r.Key, operator, r.Values)
		if invalid != nil {
			err = errors.Join(err, invalid)
			continue
		}
		requirements = append(requirements, *requirement)
	}
	return requirements, err
}
