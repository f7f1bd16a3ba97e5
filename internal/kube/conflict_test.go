package kube

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestRoutine(t *testing.T) {
	conflict := fmt.Errorf("patch: %w", apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")))
	gone := apierrors.NewNotFound(schema.GroupResource{}, "a")
	refused := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"conflict":                    {conflict, true},
		"gone":                        {gone, true},
		"there already":               {apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), true},
		"no namespace for it":         {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), false},
		"refused":                     {refused, false},
		"something else":              {errors.New("broken"), false},
		"several, all routine":        {utilerrors.NewAggregate([]error{conflict, gone}), true},
		"several, one of them is not": {fmt.Errorf("all: %w", utilerrors.NewAggregate([]error{conflict, refused})), false},
		"joined, all routine":         {errors.Join(conflict, gone), true},
		"joined, one of them is not":  {fmt.Errorf("all: %w", errors.Join(conflict, refused)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Routine(tc.err); got != tc.want {
				t.Errorf("Routine() is %t, want %t", got, tc.want)
			}
			if result, err := Result(tc.err); (err == nil) != tc.want || (result.RequeueAfter > 0) != tc.want {
				t.Errorf("Result() is %v, %v", result, err)
			}
		})
	}
	if result, err := Result(nil); err != nil || !result.IsZero() {
		t.Errorf("Result(nil) is %v, %v", result, err)
	}
}
