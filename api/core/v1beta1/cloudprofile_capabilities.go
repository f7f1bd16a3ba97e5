package v1beta1

import (
	"encoding/json"
	"fmt"
)

// Capabilities maps the name of a capability to the values that a machine type or image has.
type Capabilities map[string]CapabilityValues

// CapabilityValues are values of one capability. In JSON it is a plain list.
// +protobuf.nullable=true
// +protobuf.options.(gogoproto.goproto_stringer)=false
type CapabilityValues []string

// String returns the values as Go prints them.
func (v CapabilityValues) String() string {
	return fmt.Sprintf("%v", []string(v))
}

// MachineImageFlavor is one set of capabilities that a machine image exists for. In JSON it is the plain map of
// capabilities; the struct around it exists because protobuf has no list of maps.
type MachineImageFlavor struct {
	// Capabilities are the capabilities of the flavor.
	Capabilities `json:",inline" protobuf:"bytes,1,rep,name=capabilities,casttype=Capabilities"`
}

// MarshalJSON writes the plain map of capabilities.
func (f MachineImageFlavor) MarshalJSON() ([]byte, error) {
	if f.Capabilities == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(f.Capabilities)
}

// UnmarshalJSON reads the plain map of capabilities.
func (f *MachineImageFlavor) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &f.Capabilities)
}

// OpenAPISchemaType says that a flavor is an object in JSON.
func (MachineImageFlavor) OpenAPISchemaType() []string { return []string{"object"} }

// OpenAPISchemaFormat says that a flavor has no particular format.
func (MachineImageFlavor) OpenAPISchemaFormat() string { return "" }
