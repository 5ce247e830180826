# Made by `reaperd iam-policy --role caller --format terraform`.

resource "aws_iam_policy" "reaperd_caller" {
  name        = "reaperd-prod-eu-caller"
  description = "reaperd: assume the roles of the configuration"

  policy = jsonencode({
    "Version" : "2012-10-17",
    "Statement" : [
      {
        "Sid" : "AssumeTheRoles",
        "Effect" : "Allow",
        "Action" : [
          "sts:AssumeRole"
        ],
        "Resource" : [
          "arn:aws:iam::111111111111:role/reaperd"
        ]
      }
    ]
  })
}
