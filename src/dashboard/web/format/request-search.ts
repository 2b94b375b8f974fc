/** The search of the page of requests: `429`, `upstream:openai`, `asked:fast` or `req_…`, with spaces between. Pure. */
import type { RequestRow } from '../../server/schema/schema.js'

/** Conditions of the API's `GET /requests`; an empty text is no condition. */
export interface SearchTerms {
  readonly status: string
  readonly upstream: string
  readonly modelAsked: string
  readonly requestId: string
}

/** The conditions that a search names. A word without a name is a status, a request id, or the model asked for. */
export function searchTerms(text: string): SearchTerms {
  const terms = { status: '', upstream: '', modelAsked: '', requestId: '' }
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const [, name, value = ''] = /^(status|upstream|asked|id):(.+)$/.exec(word) ?? []
    if (name === 'status' || /^[1-5]\d\d$/.test(word))
      terms.status = name === undefined ? word : value
    else if (name === 'upstream') terms.upstream = value
    else if (name === 'id' || word.startsWith('req_'))
      terms.requestId = name === undefined ? word : value
    else terms.modelAsked = name === undefined ? word : value
  }
  return /^[1-5]\d\d$/.test(terms.status) ? terms : { ...terms, status: '' }
}

/** Whether a request meets the conditions. */
export function meetsTerms(row: RequestRow, terms: SearchTerms): boolean {
  return (
    (terms.status === '' || row.status === Number(terms.status)) &&
    (terms.upstream === '' || row.upstream === terms.upstream) &&
    (terms.modelAsked === '' || row.modelAsked === terms.modelAsked) &&
    (terms.requestId === '' || row.requestId === terms.requestId)
  )
}
