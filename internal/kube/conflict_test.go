package kube

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRoutine(t *testing.T) {
	conflict := fmt.Errorf("patch: %w", apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")))
	gone := apierrors.NewNotFound(schema.GroupResource{}, "a")
	refused := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	for name, tc := range map[string]struct {
		err             error
		want, contested bool
	}{
		"conflict":                    {conflict, true, true},
		"gone":                        {gone, true, false},
		"already exists":              {apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), true, true},
		"no namespace for it":         {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), false, false},
		"refused":                     {refused, false, false},
		"something else":              {errors.New("broken"), false, false},
		"several, all routine":        {utilerrors.NewAggregate([]error{conflict, gone}), true, false},
		"several, one of them is not": {fmt.Errorf("all: %w", utilerrors.NewAggregate([]error{conflict, refused})), false, false},
		"joined, all routine":         {errors.Join(conflict, gone), true, false},
		"joined, all contested":       {errors.Join(conflict, conflict), true, true},
		"joined, one of them is not":  {fmt.Errorf("all: %w", errors.Join(conflict, refused)), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Routine(tc.err); got != tc.want {
				t.Errorf("Routine() is %t, want %t", got, tc.want)
			}
			if got := Contested(tc.err); got != tc.contested {
				t.Errorf("Contested() is %t, want %t", got, tc.contested)
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

func TestReported(t *testing.T) {
	final, broken := reconcile.TerminalError(errors.New("invalid")), errors.New("refused")
	for name, tc := range map[string]struct {
		err, writeErr error
		final         bool
		want          string
	}{
		"nothing":                         {},
		"reported":                        {err: broken, want: "refused"},
		"a final one":                     {err: final, final: true, want: "terminal error: invalid"},
		"a final one that is not written": {err: final, writeErr: broken, want: "terminal error: invalid\nrefused"},
		"only the writing failed":         {writeErr: broken, want: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Reported(tc.err, tc.writeErr)
			if got := fmt.Sprint(err); got != cmp.Or(tc.want, "<nil>") || errors.Is(err, reconcile.TerminalError(nil)) != tc.final {
				t.Errorf("Reported() is %q, want %q", got, tc.want)
			}
		})
	}
}
