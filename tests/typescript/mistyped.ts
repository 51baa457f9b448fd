// Must not compile: a state that no sandbox has.
import { Sandbox } from '@cove/sdk'

export async function main(): Promise<boolean> {
  const sandbox = await Sandbox.connect('i0')
  return sandbox.info.state === 'asleep'
}
