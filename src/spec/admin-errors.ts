/** The errors of the admin API, as rows of the table of all errors. */

export const ADMIN_ERRORS = {
  permission_denied: {
    status: 403,
    type: 'permission_error',
    when: 'The role of the administrator does not have the right that this needs.',
  },
  object_not_found: {
    status: 404,
    type: 'invalid_request_error',
    when: 'There is no such object, or it belongs to a project that the administrator may not see.',
  },
  contents_unreadable: {
    status: 409,
    type: 'invalid_request_error',
    when: 'The contents of the request are encrypted with a key that the gateway does not have, or were changed in the store.',
  },
  idempotency_key_in_use: {
    status: 409,
    type: 'invalid_request_error',
    when: 'A request with this Idempotency-Key has not been answered: it is still being handled, or the gateway has stopped meanwhile; look up whether it was carried out.',
  },
  precondition_failed: {
    status: 412,
    type: 'invalid_request_error',
    when: 'The object was changed since the ETag in If-Match was read; read it again.',
  },
} as const
