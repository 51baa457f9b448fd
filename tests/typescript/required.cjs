// The package, as CommonJS takes it.
const { Sandbox, operations } = require('@cove/sdk')
require('@cove/sdk/agent')
console.log(typeof Sandbox.create, typeof operations)
