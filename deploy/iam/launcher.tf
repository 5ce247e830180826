# Made by `reaperd iam-policy --role launcher --format terraform`.

resource "aws_iam_policy" "reaperd_launcher" {
  name        = "reaperd-prod-eu-launcher"
  description = "reaperd: launch workers with the tag of this deployment, end nothing"

  policy = jsonencode({
    "Version" : "2012-10-17",
    "Statement" : [
      {
        "Sid" : "Look",
        "Effect" : "Allow",
        "Action" : [
          "ec2:DescribeImages",
          "ec2:DescribeInstanceTypeOfferings",
          "ec2:DescribeInstanceTypes",
          "ec2:DescribeInstances",
          "ec2:DescribeRegions",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeSpotPriceHistory",
          "ec2:DescribeSubnets",
          "sts:GetCallerIdentity"
        ],
        "Resource" : "*"
      },
      {
        "Sid" : "LaunchWithOurTag",
        "Effect" : "Allow",
        "Action" : [
          "ec2:RunInstances"
        ],
        "Resource" : [
          "arn:aws:ec2:*:111111111111:instance/*",
          "arn:aws:ec2:*:111111111111:network-interface/*",
          "arn:aws:ec2:*:111111111111:spot-instances-request/*",
          "arn:aws:ec2:*:111111111111:volume/*"
        ],
        "Condition" : {
          "StringEquals" : {
            "aws:RequestTag/reaperd:owner" : "prod-eu",
            "ec2:Region" : [
              "eu-west-1",
              "us-east-1"
            ]
          }
        }
      },
      {
        "Sid" : "LaunchFromThese",
        "Effect" : "Allow",
        "Action" : [
          "ec2:RunInstances"
        ],
        "Resource" : [
          "arn:aws:ec2:*::image/*",
          "arn:aws:ec2:*:111111111111:security-group/*",
          "arn:aws:ec2:*:111111111111:subnet/*"
        ],
        "Condition" : {
          "StringEquals" : {
            "ec2:Region" : [
              "eu-west-1",
              "us-east-1"
            ]
          }
        }
      },
      {
        "Sid" : "TagWhatIsLaunched",
        "Effect" : "Allow",
        "Action" : [
          "ec2:CreateTags"
        ],
        "Resource" : [
          "arn:aws:ec2:*:111111111111:instance/*",
          "arn:aws:ec2:*:111111111111:network-interface/*",
          "arn:aws:ec2:*:111111111111:spot-instances-request/*",
          "arn:aws:ec2:*:111111111111:volume/*"
        ],
        "Condition" : {
          "StringEquals" : {
            "ec2:CreateAction" : "RunInstances",
            "aws:RequestTag/reaperd:owner" : "prod-eu",
            "ec2:Region" : [
              "eu-west-1",
              "us-east-1"
            ]
          }
        }
      },
      {
        "Sid" : "GiveWorkersTheirRole",
        "Effect" : "Allow",
        "Action" : [
          "iam:PassRole"
        ],
        "Resource" : [
          "arn:aws:iam::111111111111:role/fleet-worker"
        ],
        "Condition" : {
          "StringEquals" : {
            "iam:PassedToService" : "ec2.amazonaws.com"
          }
        }
      },
      {
        "Sid" : "EndNothing",
        "Effect" : "Deny",
        "Action" : [
          "ec2:CancelSpotInstanceRequests",
          "ec2:DeleteTags",
          "ec2:ModifyInstanceAttribute",
          "ec2:StopInstances",
          "ec2:TerminateInstances"
        ],
        "Resource" : "*"
      },
      {
        "Sid" : "TagNothingThatRuns",
        "Effect" : "Deny",
        "Action" : [
          "ec2:CreateTags"
        ],
        "Resource" : "*",
        "Condition" : {
          "StringNotEquals" : {
            "ec2:CreateAction" : "RunInstances"
          }
        }
      }
    ]
  })
}
