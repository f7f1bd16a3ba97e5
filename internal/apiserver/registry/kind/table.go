package kind

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// What cells show for values that are not set.
const (
	Unknown = "<unknown>"
	Pending = "<pending>"
	None    = "<none>"
)

// Column is a column of the tables that clients such as kubectl print. Its type is "string".
type Column[T any] struct {
	Name string
	// Description says what the column shows.
	Description string
	// Wide columns are in wide tables only.
	Wide bool
	// Unformatted columns have no format. That of others is "name", as clients know it.
	Unformatted bool
	// Value returns the cell of an object, a string or a number.
	Value func(obj *T) any
	// Condition is the condition whose status is the cell, instead of Value. Its kind has Conditions.
	Condition corev1beta1.ConditionType
}

func (c Column[T]) definition() metav1.TableColumnDefinition {
	definition := metav1.TableColumnDefinition{Name: c.Name, Type: "string", Format: "name", Description: c.Description}
	if c.Wide {
		definition.Priority = 1
	}
	if c.Unformatted {
		definition.Format = ""
	}
	return definition
}

// ConditionStatus returns the status of a condition for a cell.
func ConditionStatus(conditions []corev1beta1.Condition, wanted corev1beta1.ConditionType) string {
	for _, c := range conditions {
		if c.Type == wanted {
			return string(c.Status)
		}
	}
	return Unknown
}

// LastOperation returns type, state and progress of an operation for a cell.
func LastOperation(last *corev1beta1.LastOperation) string {
	if last == nil {
		return Pending
	}
	return fmt.Sprintf("%s %s (%d%%)", last.Type, last.State, last.Progress)
}

// table prints objects of a kind.
type table[T any] struct{ kind *Kind[T] }

// ConvertToTable implements rest.TableConvertor.
func (t table[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if list, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else {
		out.ResourceVersion = metaOf(obj).ResourceVersion
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = t.definitions()
	}
	var err error
	out.Rows, err = metatable.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		cells := []any{name}
		for _, column := range t.kind.Columns {
			cells = append(cells, t.cell(column, typed[T](obj)))
		}
		cells = append(cells, age)
		for _, column := range t.kind.ColumnsAfterAge {
			cells = append(cells, t.cell(column, typed[T](obj)))
		}
		return cells, nil
	})
	return out, err
}

func (t table[T]) cell(column Column[T], obj *T) any {
	if column.Condition != "" {
		return ConditionStatus(t.kind.Conditions(obj), column.Condition)
	}
	return column.Value(obj)
}

func (t table[T]) definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."}}
	for _, column := range t.kind.Columns {
		definitions = append(definitions, column.definition())
	}
	age := metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: "Time since the creation of the object."}
	if t.kind.AgeAsString {
		age.Type = "string"
	}
	definitions = append(definitions, age)
	for _, column := range t.kind.ColumnsAfterAge {
		definitions = append(definitions, column.definition())
	}
	return definitions
}
