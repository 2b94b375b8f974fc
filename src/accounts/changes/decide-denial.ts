/** Decides what a denial of a workload identity is: the rules of its settings, for every door. Pure. */
import type { JsonObject } from '../../base/json.js'
import type { Denial, DenialSubject } from '../../store/denials.js'
import { Faults, nearestAdvice, readObject, textIn, textType, TIME, type Fields } from './field-types.js'
import { REASON } from './fields.js'
import { invalid } from './refusal.js'

const SUBJECT = textType((text) => text !== '' && text.length <= 4_096, {
  fix: 'Send 1 to 4096 characters.',
})

/** The settings of a denial. */
export const DENIAL_SETTINGS = {
  identity: { type: SUBJECT, means: 'An entry of `identity` in the configuration.' },
  sub: { type: SUBJECT, means: 'The subject of tokens; or `jti`.', optional: true },
  jti: { type: SUBJECT, means: 'The id of one token; or `sub`.', optional: true },
  reason: { type: REASON, means: 'Why.', default: '' },
  expires_at: { type: TIME.nullable(), means: 'When it ends; null: for ever.', default: null },
} as const satisfies Fields

/** The settings of a new denial. */
export type NewDenial = DenialSubject & Pick<Denial, 'reason' | 'expiresAtMs'>

/** The denial that values of `DENIAL_SETTINGS` describe. `identities`: those of the configuration. Pure. */
export function decideDenial(
  wish: JsonObject,
  { identities, nowMs }: { readonly identities: readonly string[]; readonly nowMs: number },
): NewDenial {
  const faults = new Faults()
  const values = readObject(DENIAL_SETTINGS, wish, { current: null, faults })
  const { sub, jti, expires_at: end } = values
  if (faults.all.length === 0 && (sub === undefined) === (jti === undefined)) {
    faults.report('sub', 'A denial has either the claim sub or the claim jti.', 'Send exactly one of them.')
  }
  if (typeof end === 'string' && Date.parse(end) <= nowMs) {
    faults.report('expires_at', 'A denial cannot end in the past.', 'Send a later time, or null.')
  }
  faults.refuse()
  const identity = textIn(values['identity'])
  if (!identities.includes(identity)) {
    const fix = nearestAdvice(identity, identities, 'Send the name of an entry of `identity`.')
    throw invalid('identity', `The configuration has no identity "${identity}".`, fix)
  }
  return {
    identity,
    sub: typeof sub === 'string' ? sub : null,
    jti: typeof jti === 'string' ? jti : null,
    reason: textIn(values['reason']).trim(),
    expiresAtMs: typeof end === 'string' ? Date.parse(end) : null,
  }
}
