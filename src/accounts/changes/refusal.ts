/**
 * Why a change of accounts, keys, members or tokens is refused: one kind and one sentence at every door. The
 * fields have the names of the admin API; a door with other names puts its own in their place.
 */
import { GatewayError, type ErrorKind } from '../../errors.js'

/** The kinds, and the kind of error and the status of each where an error has no other name for it. */
const KINDS = {
  unknown_field: ['malformed_request', 400],
  invalid_field: ['malformed_request', 400],
  read_only_field: ['malformed_request', 400],
  forbidden: ['forbidden', 403],
  plan_limit: ['plan_limit', 403],
  not_found: ['not_found', 404],
  name_taken: ['malformed_request', 400],
  has_children: ['malformed_request', 409],
  secret_in_use: ['malformed_request', 409],
} as const satisfies Record<string, readonly [ErrorKind, status: number]>

type RefusalKind = keyof typeof KINDS

/** One wrong field. */
export interface FieldFault {
  readonly kind: RefusalKind
  /** A path such as `limits.usd_per_day`. */
  readonly field: string
  readonly detail: string
  /** What to do. */
  readonly fix: string
}

/** The field of a refusal, and the advice. */
interface Advice {
  readonly field?: string
  readonly fix?: string
}

/** A change that is refused. Its message has the names of the admin API. */
export class Refusal extends GatewayError {
  readonly refusal: RefusalKind
  readonly detail: string
  readonly field: string | undefined
  readonly fix: string | undefined
  /** All wrong fields, if it is about fields alone. */
  readonly faults: readonly FieldFault[]

  constructor(
    refusal: RefusalKind,
    detail: string,
    { field, fix }: Advice = {},
    faults: readonly FieldFault[] = [],
  ) {
    const [kind, status] = KINDS[refusal]
    super(kind, fix === undefined ? detail : `${detail} ${fix}`, {
      status,
      ...(field === undefined ? {} : { param: field }),
    })
    this.refusal = refusal
    this.detail = detail
    this.field = field
    this.fix = fix
    this.faults = faults
  }

  /** The same with the names that a door has for the fields. */
  named(nameOf: (field: string) => string): Refusal {
    const own = <At extends FieldFault | (Advice & Pick<FieldFault, 'detail'>)>(at: At): At => {
      const { field, detail } = at
      if (field === undefined) return at
      const name = nameOf(field)
      return { ...at, field: name, detail: detail.replaceAll(`"${field}"`, `"${name}"`) }
    }
    const { detail, ...advice } = own({
      detail: this.detail,
      ...(this.field === undefined ? {} : { field: this.field }),
      ...(this.fix === undefined ? {} : { fix: this.fix }),
    })
    return new Refusal(this.refusal, detail, advice, this.faults.map(own))
  }
}

/** The refusal of one or several wrong fields: kind, field and sentence are those of the first. */
export function faulty(faults: readonly FieldFault[]): Refusal {
  const [first] = faults
  if (first === undefined) throw new GatewayError('bug', 'no field is wrong')
  const { kind, detail, ...advice } = first
  return new Refusal(kind, detail, advice, faults)
}

/** A field with a wrong value. */
export function invalid(field: string, detail: string, fix: string): Refusal {
  return faulty([{ kind: 'invalid_field', field, detail, fix }])
}

/** The refusal of a value that names no account. */
export function noAccountNamed(name: string): Refusal {
  return invalid('account', `There is no account "${name}".`, 'Send the name of an account.')
}

/** The refusal of a change of an account that does not exist. */
export function noAccount(): Refusal {
  return new Refusal('not_found', 'There is no such account.', { field: 'account' })
}
