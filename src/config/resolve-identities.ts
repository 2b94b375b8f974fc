/** Resolves `identity:` and checks the rules that the schema cannot express. */
import { resolve } from 'node:path'
import { isObject } from '../formats/chat/json.js'
import { isSecureAddress } from '../http/private-addresses.js'
import type { Path, ReportFinding } from './problem.js'
import { amountsOf } from './resolve-limits.js'
import type { IdentityValues, WorkloadIdentity } from './schema/identity-schema.js'

/** Inputs for checking the section. */
export interface IdentityContext {
  readonly folder: string
  /** Null if the file is not readable. */
  readonly readFile: (path: string) => string | null
  readonly whyUnreadable: (path: string) => string
}

/** Reports problems that span several keys, addresses that are not allowed, and unreadable files. */
export function checkIdentities(
  identities: readonly IdentityValues[],
  context: IdentityContext,
  report: ReportFinding,
): void {
  identities.forEach((each, index) => {
    const path: Path = ['identity', index]
    checkKeySource(each, path, context, report)
    for (const other of identities.slice(0, index)) {
      if (other.name === each.name) report([...path, 'name'], 'is a duplicate')
      if (other.issuer !== each.issuer) continue
      const common = each.audience.findIndex((audience) => other.audience.includes(audience))
      if (common === -1) continue
      const problem = `is also an audience of "${other.name}", which has the same issuer`
      report([...path, 'audience', common], problem)
    }
  })
}

function checkKeySource(
  { issuer, jwks_uri: address, jwks_file: file }: IdentityValues,
  path: Path,
  { readFile, whyUnreadable }: IdentityContext,
  report: ReportFinding,
): void {
  if (address !== undefined && file !== undefined) {
    report([...path, 'jwks_file'], 'must not be set together with jwks_uri')
  }
  if (address !== undefined && !isSecureAddress(address)) {
    report([...path, 'jwks_uri'], ADDRESS_RULE)
  }
  if (file !== undefined) {
    const content = readFile(file)
    if (content === null) report([...path, 'jwks_file'], whyUnreadable(file))
    else if (!isKeySet(content)) report([...path, 'jwks_file'], 'must be a JSON object with keys')
  } else if (address === undefined && !isSecureAddress(issuer)) {
    report([...path, 'issuer'], `${ADDRESS_RULE}, unless jwks_uri or jwks_file is set`)
  }
}

const ADDRESS_RULE = 'must be a URL that starts with https:// (http:// is allowed for loopback)'

function isKeySet(content: string): boolean {
  try {
    const value: unknown = JSON.parse(content)
    return isObject(value) && Array.isArray(value['keys'])
  } catch {
    return false
  }
}

/** The resolved section. */
export function identitiesOf(
  identities: readonly IdentityValues[],
  folder: string,
): WorkloadIdentity[] {
  return identities.map(({ limits, jwks_file: file, ...each }) => ({
    ...each,
    limits: amountsOf(limits),
    ...(file === undefined ? {} : { jwks_file: resolve(folder, file) }),
  }))
}
