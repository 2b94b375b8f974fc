/** Dialogs that change an account: create, settings, limits, state and the link of its login. */
import type { ReactElement } from 'react'
import type { AccountPageReply, InviteReply, PlanName } from '../../../../control/dashboard/schema/schema.js'
import { change } from '../../api/endpoints.js'
import { useResource } from '../../api/use-resource.js'
import { Confirm, Dialog, FormDialog, ShownOnce } from '../../components/dialog.js'
import { SelectField, TextField, type Bound } from '../../components/form.js'
import { SuggestField } from '../../components/suggest-field.js'
import { BlockSkeleton, ProblemLine } from '../../components/loading-states.js'
import { report } from '../../components/notices.js'
import { exactCount, exactDollars, plural } from '../../format/number.js'
import { fullTime } from '../../format/time.js'
import { priceText } from '../../shell/navigation-rail.js'
import { useRights, useSession } from '../../shell/session.js'
import {
  labelsFault,
  labelsIn,
  labelsText,
  LIMIT_FIELDS,
  limitsOf,
  limitValues,
  type LimitField,
} from '../keys/key-draft.js'

interface LinkProps {
  readonly email: string
  readonly link: InviteReply['link']
  readonly onClose: () => void
}

/** A one-time link, shown once; only a notice if the address got it by mail. */
export function linkShown({ email, link, onClose }: LinkProps): ReactElement | undefined {
  const { url, expiresAtMs } = link
  if (url === null) {
    report(`${email} gets a link by mail.`)
    return undefined
  }
  return (
    <ShownOnce
      title={`Link for ${email}`}
      description={`Send this link to the person. It sets a password, works once and expires ${fullTime(expiresAtMs)}. A person who has a password here enters it, or signs in. You will not see the link again.`}
      what="link"
      secret={url}
      onClose={onClose}
    />
  )
}

interface NewLinkProps extends Omit<LinkProps, 'link'> {
  /** What it is a link for: `password`. */
  readonly kind?: string
  readonly description: string
  readonly make: () => Promise<Pick<InviteReply, 'link'>>
}

/** Makes a new link for a person after a confirmation. */
export function NewLink({ email, kind = 'new', description, make, onClose }: NewLinkProps) {
  return (
    <Confirm
      title={`Create a ${kind} link for ${email}?`}
      description={`Earlier links stop working. ${description}`}
      verb="Create link"
      tone="primary"
      send={async () => linkShown({ email, link: (await make()).link, onClose })}
      onClose={onClose}
    />
  )
}

/** What a link does that is for someone without a password, and for someone with one. */
export const LINK_EFFECTS = {
  first: 'With the link, the person sets a password and signs in.',
  other: 'The password does not change until the new link is used.',
} as const

/** The plans, as options. */
function usePlans(): readonly { value: PlanName; label: string }[] {
  const plans = useResource('/plans').data?.plans ?? []
  return plans.map(({ name, priceUsd, maxKeys }) => ({
    value: name,
    label: `${name}${priceText(priceUsd)}, ${maxKeys === null ? 'unlimited' : maxKeys} keys`,
  }))
}

/** Creates an account; `parent` is the name of the account above it, as the first value. */
export function CreateAccount({
  parent = '',
  onClose,
}: {
  readonly parent?: string
  readonly onClose: () => void
}) {
  const plans = usePlans()
  // As on the server: `starter`, else the first plan of the configuration.
  const usual = (plans.find(({ value }) => value === 'starter') ?? plans[0])?.value ?? ''
  return (
    <FormDialog
      title="Create account"
      description="A team, an app or a customer. Its limits count for it and for all accounts below it."
      verb="Create"
      initial={{ name: '', parent, email: '', plan: '' }}
      send={async ({ name, parent: above, email, plan }) => {
        const owner = email.trim()
        const { account, link } = await change('POST /accounts', {
          name: name.trim(),
          plan: plan || usual,
          ...(above.trim() === '' ? {} : { parent: above.trim() }),
          ...(owner === '' ? {} : { email: owner }),
        })
        if (link !== null) return linkShown({ email: owner, link, onClose })
        report(`Created the account ${account.name}.`)
        return undefined
      }}
      onClose={onClose}
    >
      {({ field, values }) => (
        <>
          <TextField
            label="Name"
            hint="1 to 63 of a-z, 0-9 and -. It never changes."
            required
            autoFocus
            autoComplete="off"
            spellCheck={false}
            maxLength={63}
            {...field('name')}
          />
          <AccountField label="Account above" hint="Empty: at the top." {...field('parent')} />
          <TextField
            label="E-mail of the owner"
            hint="Optional. A new person gets a link to set a password."
            type="email"
            autoComplete="off"
            {...field('email')}
          />
          <SelectField label="Plan" options={plans} {...field('plan')} value={values.plan || usual} />
        </>
      )}
    </FormDialog>
  )
}

/** The name of an account, with those that the server finds. */
export function AccountField({
  label = 'Account',
  ...field
}: Bound & { readonly label?: string; readonly hint?: string; readonly required?: boolean }) {
  const { data } = useResource('/account-tree', { search: field.value || 'a' })
  const names = (data?.rows ?? []).slice(0, 20).map(({ name }) => name)
  // Enter takes the first one: the name that was typed, if there is one.
  const proposals = [
    ...names.filter((name) => name === field.value),
    ...names.filter((name) => name !== field.value),
  ]
  return <SuggestField label={label} proposals={proposals} {...field} />
}

/** What the dialogs of an account need of it. */
interface AccountPart {
  readonly id: string
  readonly name: string
  readonly displayName: string
  readonly labels: Readonly<Record<string, string>>
  /** The names of the accounts above it, from the top. */
  readonly above: readonly string[]
  readonly plan: string
  readonly disabled: boolean
  readonly liveKeys: number
  /** The address of the login that was made with it. */
  readonly email: string | null
}

interface AccountProps {
  readonly account: AccountPart
  readonly onClose: () => void
}
/** Changes the display name, the labels, the plan and the account above. */
export function EditAccount({ account, onClose }: AccountProps) {
  const { id, name, displayName, labels, above, plan, liveKeys } = account
  const plans = usePlans()
  const { refresh } = useSession()
  return (
    <FormDialog
      title={`Edit ${name}`}
      description={`The name ${name} itself never changes.`}
      verb="Save"
      initial={{ displayName, labels: labelsText(labels), parent: above.at(-1) ?? '', plan }}
      check={(values) => {
        const fault = labelsFault(values.labels)
        return fault === null ? {} : { labels: fault }
      }}
      send={async ({ displayName: shown, labels: text, parent, plan: chosen }) => {
        await change(
          'PATCH /accounts/{id}',
          {
            ...{ displayName: shown.trim() || name, labels: labelsIn(text) },
            ...{ parent: parent.trim() || null, plan: chosen },
          },
          id,
        )
        await refresh()
        report(`Saved. ${name} has the new settings.`)
      }}
      onClose={onClose}
    >
      {({ field }) => (
        <>
          <TextField label="Display name" maxLength={100} autoFocus {...field('displayName')} />
          <AccountField
            label="Account above"
            hint="Its limits count for this account, too. Empty: at the top."
            {...field('parent')}
          />
          <TextField
            label="Labels"
            hint="For usage by label, limits and routes: team=research env=ci."
            autoComplete="off"
            spellCheck={false}
            {...field('labels')}
          />
          <SelectField
            label="Plan"
            hint={`The account has ${plural(liveKeys, 'key')}. A smaller plan keeps them, and allows no new ones.`}
            options={plans}
            {...field('plan')}
          />
        </>
      )}
    </FormDialog>
  )
}

/** Makes a link with which the login of the account sets a password. */
export function PasswordLink({ account: { id, name, email: login }, onClose }: AccountProps) {
  return (
    <NewLink
      email={login ?? name}
      kind="password"
      description={LINK_EFFECTS.other}
      make={() => change('POST /accounts/{id}/reset', {}, id)}
      onClose={onClose}
    />
  )
}

/** Disables or enables the account. */
export function DisableAccount({ account: { id, name, disabled, liveKeys }, onClose }: AccountProps) {
  return (
    <Confirm
      title={`${disabled ? 'Enable' : 'Disable'} ${name}?`}
      description={
        disabled
          ? `The ${liveKeys} keys of the account and of all below it work again.`
          : `Requests with the ${liveKeys} keys of the account and of all below it fail within 1 second. The account can be enabled again.`
      }
      verb={disabled ? 'Enable' : 'Disable'}
      tone={disabled ? 'primary' : 'danger'}
      send={async () => {
        await change('PATCH /accounts/{id}', { disabled: !disabled }, id)
        report(disabled ? `Enabled. ${name} works again.` : `Disabled. ${name} and its keys stopped working.`)
      }}
      onClose={onClose}
    />
  )
}

interface LimitsProps {
  /** The name of the account. */
  readonly name: string
  readonly onClose: () => void
}

/** Sets the budgets and the other limits of the account. */
export function AccountLimits({ name, onClose }: LimitsProps) {
  const { data, problem } = useResource('/accounts/{id}', { id: name })
  if (data === null) {
    return (
      <Dialog title={`Budget of ${name}`} onClose={onClose}>
        {problem === null ? <BlockSkeleton /> : <ProblemLine problem={problem} />}
      </Dialog>
    )
  }
  return <LimitsForm page={data} onClose={onClose} />
}

function LimitsForm({ page, onClose }: { readonly page: AccountPageReply; readonly onClose: () => void }) {
  const { isAdmin } = useRights()
  const { account, limits } = page
  const { name } = account
  const initial = limitValues(limits)
  return (
    <FormDialog
      title={`Budget of ${name}`}
      description={
        account.children === 0
          ? 'The limits of the account, over all its keys. An empty field is no limit.'
          : 'The limits of the account and of all below it together. An empty field is no limit.'
      }
      verb="Save"
      initial={initial}
      send={async (values) => {
        await change('PUT /accounts/{id}/limits', limitsOf(values), name)
        report(`Saved. The limits of ${name} hold from now on.`)
      }}
      onClose={onClose}
    >
      {({ field }) => {
        const fields = (shown: readonly LimitField[]) => (
          <div className="field-grid">
            {shown.map((limit) => (
              <TextField
                key={limit.name}
                label={limit.label}
                type="number"
                min={0}
                step={limit.step}
                autoFocus={limit === BUDGETS[0]}
                inputMode={limit.unit === 1 ? 'numeric' : 'decimal'}
                placeholder="no limit"
                hint={boundText(page, limit, isAdmin)}
                {...field(limit.name)}
              />
            ))}
          </div>
        )
        return (
          <>
            {fields(BUDGETS)}
            <details className="more-rows" open={OTHERS.some(({ name }) => initial[name] !== '')}>
              <summary>Other limits: requests, tokens, pictures, sound</summary>
              {fields(OTHERS)}
            </details>
          </>
        )
      }}
    </FormDialog>
  )
}

const ofMoney = LIMIT_FIELDS.filter(({ unit }) => unit !== 1)
/** What people come for: that of the month first. */
const BUDGETS = [
  ...ofMoney.filter(({ name }) => name === 'nanoUsdPerMonth'),
  ...ofMoney.filter(({ name }) => name !== 'nanoUsdPerMonth'),
]
const OTHERS = LIMIT_FIELDS.filter(({ unit }) => unit === 1)

/** The lowest limit of the accounts above, and of the plan. */
function boundText(
  { inherited, planLimits, account }: AccountPageReply,
  { name, unit }: LimitField,
  isAdmin: boolean,
) {
  const all = [
    ...inherited.map((above) => ({ of: above.name, value: above.limits[name] })),
    { of: `the plan ${account.plan}`, value: planLimits[name] },
  ].filter((each): each is { of: string; value: number } => each.value !== undefined)
  const [lowest] = all.sort((a, b) => a.value - b.value)
  if (lowest === undefined) return undefined
  const text = unit === 1 ? exactCount(lowest.value) : exactDollars(lowest.value)
  return isAdmin ? `${lowest.of}: ${text}` : `${lowest.of} allows ${text}`
}
