package decoded

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"gardener.cloud/gardener/internal/kube/quantities"
)

const (
	// maxDepth is how deep messages may be nested. Decoders have no limit of their own, and a stack that is too large ends the process.
	maxDepth = 500
	// grown is by how much more a list and a map take than their elements, as they grow while they are decoded.
	grown = 2
	// perQuantity is what a quantity takes whose text is longer than shortQuantity, or has an exponent, such as 1e999.
	perQuantity, shortQuantity = 1 << 10, 20
)

// walk goes through a message as its decoder will, which is generated from the same tags, and counts down what that allocates.
type walk struct{ left int64 }

// take reports whether something still fits.
func (w *walk) take(bytes int64) bool {
	w.left -= bytes
	return w.left >= 0
}

// fieldType is the type of a field of a message. Its elements are in a message each if it is repeated.
type fieldType struct {
	reflect.Type
	repeated bool
}

// message walks through a message of a type. Fields that the type does not have are skipped, as by the decoder, and so is the rest of a message
// that is malformed.
func (w *walk) message(data []byte, fields map[int32]fieldType, depth int) bool {
	if depth > maxDepth {
		return false
	}
	for len(data) > 0 {
		tag, n := varint(data)
		if n == 0 {
			return true
		}
		data = data[n:]
		field, known := fields[int32(tag>>3)] //nolint:gosec // decoders ignore the upper bits, too
		skip := 0
		switch tag & 7 {
		case 0: // a number
			_, skip = varint(data)
		case 1:
			skip = 8
		case 5:
			skip = 4
		case 2: // a text, a message, or numbers
			length, n := varint(data)
			if n == 0 || length > uint64(len(data)-n) {
				return true
			}
			payload := data[n : n+int(length)] //nolint:gosec // it is not longer than data
			if skip = n + len(payload); known && !w.field(payload, field, depth) {
				return false
			}
			known = false
		}
		if skip == 0 && tag&7 == 0 || skip > len(data) {
			return true
		}
		if known && !w.take(grown*int64(reflect.TypeFor[int64]().Size())) {
			return false
		}
		data = data[skip:]
	}
	return true
}

// varint reads a number, and how many bytes it has: none if it does not end. Bits that are too much are ignored, as by decoders.
func varint(data []byte) (number uint64, n int) {
	for i, b := range data[:min(len(data), 10)] {
		number |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return number, i + 1
		}
	}
	return 0, 0
}

// field walks through the value of a field, or one of its values.
func (w *walk) field(payload []byte, field fieldType, depth int) bool {
	t := field.Type
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		element := t.Elem()
		if !field.repeated { // a list with a name of its own is a message with the elements
			return w.message(payload, fieldsOf(t), depth+1)
		}
		size := int64(element.Size())
		if isNumber(element) { // which may all be in one payload
			size *= int64(len(payload))
		}
		return w.take(grown*size) && w.value(payload, element, depth)
	}
	return w.value(payload, t, depth)
}

func isNumber(t reflect.Type) bool { return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 }

// value walks through a value, for which there is room already unless it is somewhere else.
func (w *walk) value(payload []byte, t reflect.Type, depth int) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return w.take(int64(t.Elem().Size())) && w.value(payload, t.Elem(), depth)
	case reflect.Map:
		return w.take(grown*int64(t.Key().Size()+t.Elem().Size())) && w.message(payload, fieldsOf(t), depth+1)
	case reflect.Struct:
		if t == reflect.TypeFor[resource.Quantity]() {
			return w.quantity(payload)
		}
		return w.message(payload, fieldsOf(t), depth+1)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return w.field(payload, fieldType{Type: t}, depth)
		}
	}
	return w.take(int64(len(payload)))
}

// quantity looks at the text of a quantity. One that takes long to parse is too much.
func (w *walk) quantity(payload []byte) bool {
	if len(payload) <= shortQuantity && !bytes.ContainsAny(payload, "eE") {
		return true
	}
	return !quantities.SlowProtobuf(payload) && w.take(perQuantity)
}

// known are the fields of types.
var known sync.Map

// fieldsOf returns the fields of the messages of a type by their numbers.
func fieldsOf(t reflect.Type) map[int32]fieldType {
	if fields, ok := known.Load(t); ok {
		return fields.(map[int32]fieldType) //nolint:forcetypeassert // nothing else is stored
	}
	fields := map[int32]fieldType{}
	switch t.Kind() {
	case reflect.Map: // each entry is a message
		fields[1], fields[2] = fieldType{Type: t.Key()}, fieldType{Type: reflect.PointerTo(t.Elem())}
	case reflect.Slice:
		fields[1] = fieldType{t, true}
	case reflect.Struct:
		for f := range t.Fields() {
			parts := strings.Split(f.Tag.Get("protobuf"), ",") // such as bytes,2,rep,name=items
			if len(parts) < 3 {                                // such as a time, which takes nothing more
				continue
			}
			if number, err := strconv.ParseInt(parts[1], 10, 32); err == nil {
				fields[int32(number)] = fieldType{f.Type, parts[2] == "rep"}
			}
		}
	}
	known.Store(t, fields)
	return fields
}
