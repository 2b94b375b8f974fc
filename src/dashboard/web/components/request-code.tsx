/** A request as code to paste, in a selected language and client format. */
import { useState } from 'react'
import type { Model } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import {
  FORMATS,
  HELLO,
  inFormat,
  LANGUAGES,
  snippet,
  baseOf,
  KEY_PLACEHOLDER,
  type Format,
  type FormattedRequest,
  type Target,
} from '../format/request-formats.js'
import { Link } from '../routing.js'
import { useSession } from '../shell/session.js'
import { CodeBlock } from './copy-button.js'
import { SelectField } from './form.js'
import { Empty } from './loading-states.js'
import { Tabs } from './tabs.js'

interface RequestCodeProps {
  readonly target: Target
  /** Makes the request; the example by default. */
  readonly make?: (format: Format, target: Target) => FormattedRequest
  /** The format that is selected initially. */
  readonly format?: Format
}

function hello(format: Format, target: Target): FormattedRequest {
  return inFormat(format, target, HELLO)
}

/** One tab per language, and a selection of the format. */
export function RequestCode({ target, make = hello, format = 'chat' }: RequestCodeProps) {
  const [chosen, setChosen] = useState<Format>(format)
  const formatted = make(chosen, target)
  return (
    <div className="stack gap-12">
      <SelectField
        label="Client format"
        options={FORMATS.map(({ id, name }) => ({ value: id, label: name }))}
        value={chosen}
        onChange={(event) => {
          const next = FORMATS.find(({ id }) => id === event.target.value)
          if (next !== undefined) setChosen(next.id)
        }}
      />
      <Tabs
        label="Languages"
        tabs={LANGUAGES.map((language) => ({
          name: language,
          content: <CodeBlock what={language} code={snippet(language, formatted)} />,
        }))}
      />
    </div>
  )
}

/** The empty state; `what` describes the future content. */
export function FirstCall({ what }: { readonly what: string }) {
  const { session } = useSession()
  const model = useExampleModel()
  const hasKeys = (session.account?.liveKeys ?? 0) > 0
  const target = { base: baseOf(session.publicUrl), model, key: KEY_PLACEHOLDER }
  return (
    <Empty title="No requests yet">
      <p>
        {what} A request appears here within a second.{' '}
        {hasKeys ? (
          <>
            Send one, with one of <Link to="/keys">your keys</Link> in the variable{' '}
            <code>{KEY_PLACEHOLDER.slice(1)}</code>:
          </>
        ) : (
          <>
            <Link to="/keys?create=1">Create a key</Link>, then:
          </>
        )}
      </p>
      <CodeBlock what="curl" code={snippet('curl', inFormat('chat', target, HELLO))} />
    </Empty>
  )
}

/** A cheap model that most gateways serve. */
const USUAL = 'gpt-5.4-mini'

/**
 * The usual model if it is served, otherwise the first served one, if possible without an announced end,
 * otherwise the usual one. `allowed` contains ids and `*` patterns.
 */
export function exampleOf(models: readonly Model[], allowed: readonly string[] | null = null): string {
  const served = models
    .filter(({ id, route }) => route?.configured === true && isAllowed(id, allowed))
    .sort((a, b) => Number(a.endsOn !== null) - Number(b.endsOn !== null))
    .map(({ id }) => id)
  const named = allowed?.find((pattern) => !pattern.endsWith('*'))
  return served.find((id) => id === USUAL) ?? served[0] ?? named ?? USUAL
}

function isAllowed(id: string, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true
  return allowed.some((pattern) =>
    pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern,
  )
}

/** The example model, from the gateway's list of models. */
export function useExampleModel(allowed: readonly string[] | null = null): string {
  return exampleOf(useResource('/models').data?.models ?? [], allowed)
}
